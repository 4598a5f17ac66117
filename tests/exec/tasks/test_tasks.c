/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placement/parts/hashes.h"
#include "placement/solve/placer.h"
#include "runtime/exec/compile/compile_needs.h"
#include "runtime/graph/load/load.h"
#include "runtime/train/data/data_source.h"
#include "tests/exec/tasks/task_world.h"
#include "tests/networks.h"

/* Every graph of graphs/ on the tasks of ps=2,worker=2, each in a session of
 * its own: the bits of one process, inference and training, for every kind of
 * plan. */

enum { kSteps = 3 };

typedef struct way {
  const char *placer;
  uint64_t seed;
} way;

enum { SEARCH, ROUND_ROBIN, RANDOM_1, RANDOM_2, RANDOM_3, WAYS };

static const way kWays[WAYS] = {{"search", 0},
                                {"round_robin", 0},
                                {"random", 1},
                                {"random", 2},
                                {"random", 3}};

typedef struct scene {
  exec_world world;
  uint32_t graphs, jobs;
} scene;

/* Returns the number of tensors that crossed tasks. */
static uint64_t check_way(scene *s, const weir_graph *graph,
                          const task_job *job, task_world *one, const way *w,
                          const char *what) {
  weir_error err = WEIR_ERROR_INIT;
  weir_placing *placing = NULL;
  weir_plan *plan = NULL;
  task_world tasks;
  char name[400];
  snprintf(name, sizeof name, "%s by %s %u", what, w->placer,
           (unsigned)w->seed);
  weir_place_request request = {
      .graph = graph,
      .cluster = "ps=2,worker=2",
      .options = {.placer = weir_placer_find(w->placer),
                  .seed = w->seed,
                  .moves = 20,
                  .ask = weir_compile_needs,
                  .ask_self = &s->world.env,
                  .strictness = WEIR_PLACE_WARN}};
  if (weir_placing_create(s->world.env.alloc, &request, &placing, &plan,
                          &err) != WEIR_OK)
    fail_msg("%s: %s %s", name, err.id, err.message);
  task_world_open(&s->world.env, job, placing, plan, 0, &tasks);
  for (int i = 0; i < kSteps; i++) task_world_step(&tasks, name);
  task_world_compare(one, &tasks, name);
  task_world_check_rows(&tasks, name);
  uint64_t crossed = task_world_values(&tasks);
  task_world_close(&tasks);
  weir_plan_unref(plan);
  weir_placing_unref(placing);
  return crossed;
}

static void check_job(scene *s, const weir_graph *graph, bool inference,
                      const char *what) {
  task_job job;
  task_world one;
  task_job_open(&s->world.env, graph, inference, &job);
  task_world_open(&s->world.env, &job, NULL, NULL, 0, &one);
  for (int i = 0; i < kSteps; i++) task_world_step(&one, what);
  uint64_t crossed[WAYS];
  for (int i = 0; i < WAYS; i++)
    crossed[i] = check_way(s, graph, &job, &one, &kWays[i], what);
  /* A graph of two nodes may be together by one of the seeds. */
  if (crossed[ROUND_ROBIN] == 0 ||
      crossed[RANDOM_1] + crossed[RANDOM_2] + crossed[RANDOM_3] == 0)
    fail_msg("%s: no tensor crossed tasks", what);
  task_world_close(&one);
  task_job_close(&job);
  s->jobs++;
}

/* Large graphs are made smaller, for the time that they take. */
static void load(scene *s, const char *name, weir_sv text, weir_graph **out) {
  static const struct {
    const char *graph, *name, *text;
  } smaller[] = {
      {"lstm_lm", "vocab", "300"},      {"lstm_lm", "hidden", "24"},
      {"lstm_lm", "batch", "4"},        {"rnn_char", "hidden", "24"},
      {"rnn_char", "steps", "8"},       {"rnn_char", "batch", "4"},
      {"gpt_decode", "d", "16"},        {"gpt_decode", "heads", "2"},
      {"gpt_decode", "room", "6"},      {"mlp.", "batch", "16"},
      {"mlp.", "hidden", "64"},         {"transformer_block", "tokens", "16"},
      {"transformer_block", "d", "96"}, {"transformer_block", "ffn", "128"}};
  weir_param_value params[3];
  weir_error err = WEIR_ERROR_INIT;
  weir_load_options options = {.registry = weir_builtin_registry(),
                               .data_form = weir_source_form,
                               .params = params};
  for (size_t i = 0; i < sizeof smaller / sizeof *smaller; i++)
    if (strncmp(name, smaller[i].graph, strlen(smaller[i].graph)) == 0)
      params[options.param_count++] = (weir_param_value){
          weir_sv_from(smaller[i].name), weir_sv_from(smaller[i].text)};
  if (weir_graph_load_text(&s->world.env, text, name, &options, out, &err) !=
      WEIR_OK)
    fail_msg("%s: %s %s", name, err.id, err.message);
}

static void check_file(scene *s, const char *folder, const char *name) {
  char path[1024], what[300];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  weir_graph *graph = NULL;
  weir_sv text = task_graph_text(path);
  load(s, name, text, &graph);
  free((char *)text.data);
  snprintf(what, sizeof what, "%s, outputs", name);
  check_job(s, graph, true, what);
  snprintf(what, sizeof what, "%s, training", name);
  if (graph->train != NULL) check_job(s, graph, false, what);
  weir_graph_unref(graph);
  s->graphs++;
}

static void every_graph(void **state) {
  scene *s = *state;
  char folder[512];
  snprintf(folder, sizeof folder, "%s/graphs", getenv("WEIR_SOURCE_ROOT"));
  DIR *dir = opendir(folder);
  assert_non_null(dir);
  const char *only = getenv("WEIR_TEST_GRAPH");
  for (struct dirent *e; (e = readdir(dir)) != NULL;)
    if (strstr(e->d_name, ".weir.yaml") != NULL && !is_network(e->d_name) &&
        (only == NULL || strstr(e->d_name, only) != NULL))
      check_file(s, folder, e->d_name);
  closedir(dir);
  assert_true(s->graphs > 0);
}

/* ---- Other clusters: more devices than tasks, more tasks than sessions */

static const char kSquare[] =
    "weir: 1\n"
    "dims: {n: 12, p: 4}\n"
    "mesh: {axes: {%s}}\n"
    "layout: {%s}\n"
    "inputs: {a: 'f32[n, n]', v: 'f32[n]', b: 'f32[n, p]'}\n"
    "nodes:\n"
    "  z: var([n, n], init=uniform(-1, 1))\n"
    "  t: transpose(a)\n"
    "  s: reduce_sum(a, axis=0)\n"
    "  w: einsum('n k, n -> k', a, v)\n"
    "  g: softmax(mul(a, a), axis=0)\n"
    "  c: matmul(add(a, z), b)\n"
    "  u: assign(z, add(z, a))\n"
    "outputs: [t, s, w, g, c, u]\n";

static void run_mesh(scene *s, const char *axes, const char *layout,
                     const char *cluster, uint32_t sessions) {
  weir_error err = WEIR_ERROR_INIT;
  weir_placing *placing = NULL;
  weir_plan *plan = NULL;
  weir_graph *graph = NULL;
  task_world one, tasks;
  task_job job;
  char text[1024], what[256];
  snprintf(text, sizeof text, kSquare, axes, layout);
  snprintf(what, sizeof what, "%s by %s on %s", axes, layout, cluster);
  load(s, "square", weir_sv_from(text), &graph);
  task_job_open(&s->world.env, graph, true, &job);
  weir_place_request request = {.graph = graph,
                                .cluster = cluster,
                                .options = {.strictness = WEIR_PLACE_WARN}};
  if (weir_placing_create(s->world.env.alloc, &request, &placing, &plan,
                          &err) != WEIR_OK)
    fail_msg("%s: %s %s", what, err.id, err.message);
  task_world_open(&s->world.env, &job, NULL, NULL, 0, &one);
  task_world_open(&s->world.env, &job, placing, plan, sessions, &tasks);
  for (int i = 0; i < kSteps; i++) {
    task_world_step(&one, what);
    task_world_step(&tasks, what);
    task_world_compare(&one, &tasks, what);
  }
  if (task_world_far_ranks(&tasks) == 0)
    fail_msg("%s: no collective crosses tasks", what);
  if (sessions == 0 && strstr(cluster, "cpu") == NULL)
    task_world_check_rows(&tasks, what);
  task_world_close(&tasks);
  task_world_close(&one);
  task_job_close(&job);
  weir_plan_unref(plan);
  weir_placing_unref(placing);
  weir_graph_unref(graph);
}

/* all_reduce, reduce_scatter, all_gather, all_to_all over two to four ranks:
 * each on a task, two on each task, and two tasks in a session. */
static void collectives_cross_tasks(void **state) {
  static const char *const forms[][3] = {
      {"row: 4", "n: row", "worker=4"},
      {"row: 3", "n: row", "worker=3"},
      {"row: 2, col: 2", "n: row, p: col", "ps=2,worker=2"},
      {"row: 4", "n: row", "worker=2,cpu=2"},
      {"row: 2, col: 2", "n: row, p: col", "worker=2,cpu=2"}};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    run_mesh(*state, forms[i][0], forms[i][1], forms[i][2], 0);
  run_mesh(*state, forms[0][0], forms[0][1], forms[0][2], 2);
  run_mesh(*state, forms[2][0], forms[2][1], forms[2][2], 3);
  run_mesh(*state, forms[0][0], forms[0][1], forms[0][2], 1);
}

/* ---- Processes compare */

static const char kTwo[] =
    "weir: 1\n"
    "nodes:\n"
    "  v: var([4], init=ones())\n"
    "  k: var([4], init=uniform(0, 1))\n"
    "  a: mul(v, k)\n"
    "  u: assign(v, tanh(%s))\n"
    "outputs: [u]\n";

static weir_placing *place(scene *s, const char *node, const char *cluster,
                           uint64_t seed, weir_graph **graph,
                           weir_plan **plan) {
  weir_error err = WEIR_ERROR_INIT;
  weir_placing *placing = NULL;
  char text[512];
  snprintf(text, sizeof text, kTwo, node);
  load(s, "two", weir_sv_from(text), graph);
  weir_place_request request = {
      .graph = *graph,
      .cluster = cluster,
      .options = {.placer = weir_placer_find("random"), .seed = seed}};
  assert_ok(
      weir_placing_create(s->world.env.alloc, &request, &placing, plan, &err),
      &err);
  return placing;
}

static weir_plan_hashes hashes_of(scene *s, const char *node,
                                  const char *cluster, uint64_t seed) {
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *graph = NULL;
  weir_plan *plan = NULL;
  weir_plan_hashes h;
  weir_placing *placing = place(s, node, cluster, seed, &graph, &plan);
  assert_ok(weir_plan_hashes_get(plan, &h, &err), &err);
  weir_plan_unref(plan);
  weir_placing_unref(placing);
  weir_graph_unref(graph);
  return h;
}

static void the_first_difference_is_named(void **state) {
  weir_plan_hashes a = hashes_of(*state, "a", "ps=1,worker=2", 1);
  weir_plan_hashes same = hashes_of(*state, "a", "ps=1,worker=2", 1);
  assert_null(weir_plan_hashes_differ(&a, &same));
  weir_plan_hashes graph = hashes_of(*state, "sub(a, v)", "ps=1,worker=2", 1);
  assert_non_null(strstr(weir_plan_hashes_differ(&a, &graph), "graph"));
  weir_plan_hashes plan = hashes_of(*state, "a", "ps=1,worker=2", 2);
  assert_non_null(strstr(weir_plan_hashes_differ(&a, &plan), "plan"));
  weir_plan_hashes parts = hashes_of(*state, "a", "ps=1,job=2", 1);
  assert_int_equal(a.plan, parts.plan);
  assert_non_null(strstr(weir_plan_hashes_differ(&a, &parts), "partition"));
}

int main(void) {
  scene s = {.graphs = 0};
  exec_world_init(&s.world);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(every_graph, &s),
      cmocka_unit_test_prestate(collectives_cross_tasks, &s),
      cmocka_unit_test_prestate(the_first_difference_is_named, &s)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  exec_world_check_empty(&s.world);
  return failed;
}
