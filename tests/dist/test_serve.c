/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/serve/serve.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placement/solve/placer.h"
#include "runtime/base/env_system.h"
#include "runtime/dist/bundle/bundle.h"
#include "runtime/dist/cluster/cluster.h"
#include "runtime/dist/cluster/cluster_session.h"
#include "runtime/exec/compile/compile_needs.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/graph/goal.h"
#include "runtime/graph/load/load.h"
#include "tests/dist/local_transports.h"
#include "tests/exec/support.h"

/* Tasks and a driver, each with its threads, over transports in memory: a
 * session whose programs run there has the bits of one process. */

enum { TASKS = 3, FETCHES = 32, FEEDS = 8 };

typedef struct scene {
  exec_world world;
  weir_env env;
  weir_net_hub *hub;
  weir_transports transports;
  weir_serve *serves[TASKS];
  pthread_t threads[TASKS];
  weir_dist *dist;
  weir_graph *graph;
  weir_goal *goal;
  weir_placing *placing;
  weir_remote *remote;
  weir_pool *pool;
  weir_exec_session *here, *there; /* one process; the tasks */
  weir_exec_feed feeds[FEEDS];
  size_t feed_count;
  weir_error err;
} scene;

static void *serve(void *self) {
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_serve_run(self, &err), &err);
  return NULL;
}

static void open_tasks(scene *s) {
  static const char *const jobs[] = {"ps", "worker", "worker"};
  weir_driver_task tasks[TASKS];
  *s = (scene){.err = WEIR_ERROR_INIT};
  exec_world_init(&s->world);
  s->env = *weir_env_system();
  s->env.alloc = &s->world.memory.base;
  assert_ok(weir_net_hub_create(&s->env, &s->hub, &s->err), &s->err);
  s->transports = local_transports(s->hub);
  for (uint32_t i = 0; i < TASKS; i++) {
    weir_serve_options o = {.transports = &s->transports,
                            .job = jobs[i],
                            .index = i == 2,
                            .address = "local:",
                            .cluster_hash = 5,
                            .threads = 1};
    assert_ok(weir_serve_create(&s->env, &o, &s->serves[i], &s->err), &s->err);
    assert_int_equal(pthread_create(&s->threads[i], NULL, serve, s->serves[i]),
                     0);
    tasks[i] =
        (weir_driver_task){jobs[i], i == 2, weir_serve_address(s->serves[i])};
  }
  weir_dist_options d = {.transports = &s->transports,
                         .tasks = tasks,
                         .task_count = TASKS,
                         .job_id = {1, 2, 3},
                         .cluster_hash = 5};
  assert_ok(weir_dist_open(&s->env, &d, &s->dist, &s->err), &s->err);
  s->env.profile = weir_dist_profile(s->dist);
  s->pool = exec_pool(&s->world, 1);
}

/* The driver ends the tasks, or the tasks are stopped. */
static void close_tasks(scene *s, bool stop) {
  weir_dist_close(s->dist, stop);
  for (uint32_t i = 0; i < TASKS; i++) {
    if (!stop) weir_serve_stop(s->serves[i]);
    assert_int_equal(pthread_join(s->threads[i], NULL), 0);
  }
  for (uint32_t i = 0; i < TASKS; i++) weir_serve_release(s->serves[i]);
  weir_net_hub_release(s->hub);
  weir_pool_release(s->pool);
  exec_world_check_empty(&s->world);
}

static void feed_all(scene *s) {
  const weir_graph *g = s->goal->graph;
  s->feed_count = 0;
  for (uint32_t i = 0; i < g->input_count; i++) {
    const weir_value *v = &g->values[g->inputs[i].value];
    weir_shape shape = *v->shape;
    if (g->inputs[i].has_default) continue;
    for (int32_t d = 0; d < shape.rank; d++)
      if (!weir_dim_known(shape.dims[d])) shape.dims[d] = weir_dim_of(16);
    weir_exec_feed *f = &s->feeds[s->feed_count++];
    f->value = g->inputs[i].value;
    assert_ok(weir_tensor_create_shaped(s->env.alloc, v->dtype, &shape,
                                        &f->tensor, &s->err),
              &s->err);
    for (int64_t k = 0;
         k < (int64_t)(f->tensor->bytes / weir_dtype_size(v->dtype)); k++) {
      if (weir_dtype_is_float(v->dtype))
        weir_tensor_set_f64(f->tensor, k, (double)(k % 17) / 16);
      else
        weir_tensor_set_i64(f->tensor, k, k % 2);
    }
  }
}

static void open_graph(scene *s, const char *name, bool train) {
  char path[1024];
  snprintf(path, sizeof path, "%s/graphs/%s.weir.yaml",
           getenv("WEIR_SOURCE_ROOT"), name);
  weir_load_options load = {.registry = weir_builtin_registry(),
                            .keep_sources = true};
  assert_ok(weir_graph_load(&s->env, path, &load, &s->graph, &s->err), &s->err);
  assert_ok(weir_goal_create(s->graph, !train, &s->goal, &s->err), &s->err);
  weir_place_request request = {
      .graph = s->graph,
      .cluster = "ps=1,worker=2",
      .inference = !train,
      .options = {.placer = weir_placer_find("round_robin"),
                  .strictness = WEIR_PLACE_WARN,
                  .ask = weir_compile_needs,
                  .ask_self = &s->env}};
  weir_plan *plan = NULL;
  assert_ok(
      weir_placing_create(s->env.alloc, &request, &s->placing, &plan, &s->err),
      &s->err);
  weir_plan_unref(plan);
  weir_bundle bundle = {
      .sources = s->graph->sources, .train = train, .placing = s->placing};
  assert_ok(
      weir_dist_remote(s->dist, &bundle, s->goal->graph, &s->remote, &s->err),
      &s->err);
  weir_session_options options = {.placing = s->placing, .remote = s->remote};
  assert_ok(weir_exec_session_create(&s->env, s->pool, s->goal->graph, &options,
                                     &s->there, &s->err),
            &s->err);
  assert_ok(weir_exec_session_create(&s->env, s->pool, s->goal->graph, NULL,
                                     &s->here, &s->err),
            &s->err);
  feed_all(s);
}

static void close_graph(scene *s) {
  for (size_t i = 0; i < s->feed_count; i++)
    weir_tensor_unref(s->feeds[i].tensor);
  weir_exec_session_release(s->there);
  weir_exec_session_release(s->here);
  weir_dist_remote_release(s->remote);
  weir_placing_unref(s->placing);
  weir_goal_release(s->goal);
  weir_graph_unref(s->graph);
}

static void run(scene *s, weir_exec_session *session, uint64_t step,
                weir_exec_fetch *fetches) {
  weir_run_options options = {.step = step};
  for (uint32_t k = 0; k < s->goal->fetch_count; k++)
    fetches[k] = (weir_exec_fetch){.value = s->goal->fetches[k]};
  weir_exec_request request = {.feeds = s->feeds,
                               .feed_count = s->feed_count,
                               .fetches = fetches,
                               .fetch_count = s->goal->fetch_count,
                               .targets = s->goal->targets,
                               .target_count = s->goal->target_count,
                               .options = &options};
  assert_ok(weir_exec_run(session, &request, &s->err), &s->err);
}

static void same_step(scene *s, uint64_t step, const char *name) {
  weir_exec_fetch here[FETCHES], there[FETCHES];
  run(s, s->here, step, here);
  run(s, s->there, step, there);
  for (uint32_t k = 0; k < s->goal->fetch_count; k++) {
    assert_int_equal(here[k].tensor->bytes, there[k].tensor->bytes);
    if (memcmp(here[k].tensor->data, there[k].tensor->data,
               here[k].tensor->bytes) != 0)
      fail_msg("%s: fetch %u of step %u differs", name, k, (unsigned)step);
    weir_tensor_unref(here[k].tensor);
    weir_tensor_unref(there[k].tensor);
  }
}

static void same_variables(scene *s, const char *name) {
  const weir_graph *g = s->goal->graph;
  for (weir_node_id id = 0; id < g->node_count; id++) {
    weir_tensor *here = NULL, *there = NULL;
    if (g->nodes[id].op->instr != WEIR_INSTR_VAR_READ) continue;
    assert_ok(weir_exec_variable_get(s->here, id, &here, &s->err), &s->err);
    assert_ok(weir_exec_variable_get(s->there, id, &there, &s->err), &s->err);
    if (memcmp(here->data, there->data, here->bytes) != 0)
      fail_msg("%s: variable %.*s differs", name, WEIR_SV(g->nodes[id].name));
    weir_tensor_unref(here);
    weir_tensor_unref(there);
  }
}

static void tasks_compute_what_one_process_does(void **state) {
  (void)state;
  static const struct {
    const char *name;
    bool train;
  } graphs[] = {{"lenet", false}, {"mlp_mesh", false}, {"mlp_train", true}};
  scene s;
  open_tasks(&s);
  for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
    open_graph(&s, graphs[i].name, graphs[i].train);
    for (uint64_t step = 0; step < 3; step++)
      same_step(&s, step, graphs[i].name);
    same_variables(&s, graphs[i].name);
    close_graph(&s);
  }
  close_tasks(&s, true);
}

/* A task that is stopped gives up its session; the driver hears of it. */
static void a_task_may_be_stopped(void **state) {
  (void)state;
  scene s;
  open_tasks(&s);
  open_graph(&s, "mlp_train", true);
  same_step(&s, 0, "mlp_train");
  weir_serve_stop(s.serves[1]);
  weir_exec_fetch fetches[FETCHES];
  for (uint32_t k = 0; k < s.goal->fetch_count; k++)
    fetches[k] = (weir_exec_fetch){.value = s.goal->fetches[k]};
  weir_exec_request request = {.feeds = s.feeds,
                               .feed_count = s.feed_count,
                               .fetches = fetches,
                               .fetch_count = s.goal->fetch_count,
                               .targets = s.goal->targets,
                               .target_count = s.goal->target_count};
  while (weir_exec_run(s.there, &request, &s.err) == WEIR_OK)
    for (uint32_t k = 0; k < s.goal->fetch_count; k++) {
      weir_tensor_unref(fetches[k].tensor);
      fetches[k].tensor = NULL;
    }
  for (uint32_t k = 0; k < s.goal->fetch_count; k++)
    weir_tensor_unref(fetches[k].tensor);
  assert_non_null(strstr(s.err.message, "worker:0"));
  close_graph(&s);
  close_tasks(&s, false);
}

static void a_task_waits_for_a_driver_no_longer_than_it_is_told(void **state) {
  (void)state;
  scene s = {.err = WEIR_ERROR_INIT};
  exec_world_init(&s.world);
  s.env = *weir_env_system();
  s.env.alloc = &s.world.memory.base;
  assert_ok(weir_net_hub_create(&s.env, &s.hub, &s.err), &s.err);
  s.transports = local_transports(s.hub);
  weir_serve_options o = {.transports = &s.transports,
                          .job = "ps",
                          .address = "local:",
                          .cluster_hash = 5,
                          .threads = 1,
                          .driver_ns = 1000000};
  assert_ok(weir_serve_create(&s.env, &o, &s.serves[0], &s.err), &s.err);
  assert_error(weir_serve_run(s.serves[0], &s.err), &s.err, "W7025");
  assert_non_null(strstr(s.err.message, "ps:0 at local:"));
  assert_non_null(strstr(s.err.message, "none has connected"));
  weir_serve_release(s.serves[0]);
  weir_net_hub_release(s.hub);
  exec_world_check_empty(&s.world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tasks_compute_what_one_process_does),
      cmocka_unit_test(a_task_may_be_stopped),
      cmocka_unit_test(a_task_waits_for_a_driver_no_longer_than_it_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
