/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/scene.h"

#include <stdlib.h>
#include <string.h>

#include "placement/solve/placer.h"
#include "tests/exec/generated.h"

weir_status scene_open_session(scene *s, const char *cluster) {
  weir_place_request request = {.graph = s->graph,
                                .cluster = cluster,
                                .options = {.placer = weir_placer_find("first"),
                                            .strictness = WEIR_PLACE_STRICT}};
  weir_plan *plan = NULL;
  const weir_gpus_options gpus = {.module = getenv("WEIR_BUILD_ROOT"),
                                  .cuda = cuda_folder,
                                  .sleepy = standin != NULL,
                                  .wait_ns = s->wait_ns};
  WEIR_TRY(weir_gpus_create(&s->world.env, &gpus, &s->world.env.gpus, &s->err));
  WEIR_TRY(weir_placing_create(s->world.env.alloc, &request, &s->placing, &plan,
                               &s->err));
  weir_session_options options = {
      .placing = s->placing, .plan = plan, .tf32 = s->tf32};
  weir_status status = weir_exec_session_create(
      &s->world.env, s->pool, s->graph, &options, &s->session, &s->err);
  weir_plan_unref(plan);
  return status;
}

void scene_open_graph(scene *s, const char *text, int threads) {
  char why[512];
  memset(s, 0, sizeof *s);
  s->err = (weir_error)WEIR_ERROR_INIT;
  exec_world_init(&s->world);
  s->pool = exec_pool(&s->world, threads);
  if (!run_load(&s->world.env, text, strlen(text), &s->graph, why))
    fail_msg("%s", why);
}

void scene_open(scene *s, const char *text, const char *cluster, int threads) {
  scene_open_graph(s, text, threads);
  assert_ok(scene_open_session(s, cluster), &s->err);
}

static void close_scene(scene *s, bool lost) {
  weir_exec_session_release(s->session);
  weir_placing_unref(s->placing);
  weir_gpus_release(s->world.env.gpus);
  weir_graph_unref(s->graph);
  weir_pool_release(s->pool);
  exec_world_check_empty(&s->world);
  if (standin != NULL && !lost)
    assert_int_equal(standin->counts().destroyed_with_work, 0);
  cuda_world_check_clean();
}

void scene_close(scene *s) {
  close_scene(s, false);
}

void scene_close_lost(scene *s) {
  close_scene(s, true);
}

weir_status scene_run(scene *s, weir_exec_fetch *fetches,
                      const weir_run_options *options) {
  for (uint32_t i = 0; i < s->graph->output_count; i++)
    fetches[i] = (weir_exec_fetch){.value = s->graph->outputs[i].value,
                                   .error = fetches[i].error};
  s->err = (weir_error)WEIR_ERROR_INIT;
  weir_exec_request request = {.fetches = fetches,
                               .fetch_count = s->graph->output_count,
                               .options = options};
  return weir_exec_run(s->session, &request, &s->err);
}

void scene_drop(const scene *s, weir_exec_fetch *fetches) {
  for (uint32_t i = 0; i < s->graph->output_count; i++)
    weir_tensor_unref(fetches[i].tensor);
}

weir_node_id scene_node(const scene *s, const char *name) {
  for (weir_node_id i = 0; i < s->graph->node_count; i++)
    if (weir_sv_equal(s->graph->nodes[i].name, weir_sv_from(name))) return i;
  fail_msg("no node %s", name);
  return 0;
}
