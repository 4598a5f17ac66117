/* SPDX-License-Identifier: Apache-2.0
 * Graphs on the tasks of ps=2,worker=2, each task a server of its own over
 * transports in memory, driven by one session: the bits of one process. */
#include <stdlib.h>
#include <string.h>

#include "placement/solve/placer.h"
#include "runtime/base/env_system.h"
#include "runtime/dist/bundle/bundle.h"
#include "runtime/dist/cluster/cluster.h"
#include "runtime/dist/cluster/cluster_session.h"
#include "runtime/dist/serve/serve.h"
#include "runtime/exec/compile/compile_needs.h"
#include "runtime/graph/load/load.h"
#include "runtime/train/data/data_source.h"
#include "tests/dist/local_transports.h"
#include "tests/exec/tasks/task_world.h"

enum { kTasks = 4, kSteps = 3 };

typedef struct server {
  weir_serve *serve;
  pthread_t thread;
  weir_status status;
  weir_error err;
} server;

typedef struct scene {
  exec_world world, outside; /* of the driver and one process; of the tasks */
  weir_net_hub *hub;
  weir_transports transports;
  server servers[kTasks];
  weir_dist *dist;
  weir_error err;
} scene;

static void *serve(void *self) {
  server *s = self;
  s->status = weir_serve_run(s->serve, &s->err);
  return NULL;
}

static void start_server(scene *s, int i) {
  server *it = &s->servers[i];
  weir_serve_options options = {.transports = &s->transports,
                                .job = i < 2 ? "ps" : "worker",
                                .index = (uint32_t)(i % 2),
                                .address = "local:",
                                .threads = 1};
  it->err = (weir_error)WEIR_ERROR_INIT;
  assert_ok(weir_serve_create(&s->outside.env, &options, &it->serve, &s->err),
            &s->err);
  assert_int_equal(pthread_create(&it->thread, NULL, serve, it), 0);
}

static void end_server(server *it) {
  if (it->serve == NULL) return;
  weir_serve_stop(it->serve);
  pthread_join(it->thread, NULL);
  assert_ok(it->status, &it->err);
  weir_serve_release(it->serve);
  it->serve = NULL;
}

static void open_scene(scene *s) {
  memset(s, 0, sizeof *s);
  s->err.struct_size = sizeof s->err;
  exec_world_init(&s->world);
  exec_world_init(&s->outside);
  s->world.env.fs = weir_env_system()->fs;
  assert_ok(weir_net_hub_create(&s->outside.env, &s->hub, &s->err), &s->err);
  s->transports = local_transports(s->hub);
}

static void open_cluster(scene *s) {
  weir_driver_task tasks[kTasks];
  for (int i = 0; i < kTasks; i++) {
    start_server(s, i);
    tasks[i] = (weir_driver_task){i < 2 ? "ps" : "worker", (uint32_t)(i % 2),
                                  weir_serve_address(s->servers[i].serve)};
  }
  weir_dist_options options = {
      .transports = &s->transports, .tasks = tasks, .task_count = kTasks};
  assert_ok(weir_dist_open(&s->world.env, &options, &s->dist, &s->err),
            &s->err);
}

static void close_cluster(scene *s) {
  weir_dist_close(s->dist, false);
  for (int i = 0; i < kTasks; i++) end_server(&s->servers[i]);
}

static void close_scene(scene *s) {
  weir_net_hub_release(s->hub);
  exec_world_check_empty(&s->world);
  exec_world_check_empty(&s->outside);
}

/* ---- Graphs */

static void load(scene *s, const char *name, weir_graph **out) {
  char path[1024];
  weir_load_options options = {.registry = weir_builtin_registry(),
                               .data_form = weir_source_form,
                               .keep_sources = true};
  snprintf(path, sizeof path, "%s/graphs/%s", getenv("WEIR_SOURCE_ROOT"), name);
  weir_sv text = task_graph_text(path);
  if (weir_graph_load_text(&s->world.env, text, name, &options, out, &s->err) !=
      WEIR_OK)
    fail_msg("%s: %s %s", name, s->err.id, s->err.message);
  free((char *)text.data);
}

/* A world of one session, whose remote is the cluster. */
static void open_remote(scene *s, const task_job *job,
                        const weir_placing *placing, bool train,
                        weir_remote **remote, task_world *w) {
  const weir_graph *graph = job->goal->graph;
  weir_bundle bundle = {.sources = job->goal->source->sources,
                        .train = train,
                        .placing = placing};
  assert_non_null(bundle.sources);
  assert_ok(weir_dist_remote(s->dist, &bundle, graph, remote, &s->err),
            &s->err);
  weir_session_options options = {.placing = placing, .remote = *remote};
  *w = (task_world){.env = &s->world.env, .job = job, .count = 1};
  w->pools[0] = exec_pool(&s->world, 1);
  assert_ok(weir_exec_session_create(&s->world.env, w->pools[0], graph,
                                     &options, &w->sessions[0], &s->err),
            &s->err);
}

static void check_way(scene *s, const weir_graph *graph, const task_job *job,
                      task_world *one, const char *placer, const char *what) {
  weir_placing *placing = NULL;
  weir_plan *plan = NULL;
  weir_remote *remote = NULL;
  task_world tasks;
  char name[400];
  snprintf(name, sizeof name, "%s by %s", what, placer);
  weir_place_request request = {.graph = graph,
                                .cluster = "ps=2,worker=2",
                                .options = {.placer = weir_placer_find(placer),
                                            .seed = 1,
                                            .moves = 20,
                                            .ask = weir_compile_needs,
                                            .ask_self = &s->world.env,
                                            .strictness = WEIR_PLACE_WARN}};
  if (weir_placing_create(s->world.env.alloc, &request, &placing, &plan,
                          &s->err) != WEIR_OK)
    fail_msg("%s: %s %s", name, s->err.id, s->err.message);
  open_cluster(s);
  open_remote(s, job, placing, job->goal->train != NULL, &remote, &tasks);
  for (int i = 0; i < kSteps; i++) task_world_step(&tasks, name);
  task_world_compare(one, &tasks, name);
  task_world_close(&tasks);
  weir_dist_remote_release(remote);
  close_cluster(s);
  weir_plan_unref(plan);
  weir_placing_unref(placing);
}

static void check_graph(scene *s, const char *name, bool inference) {
  static const char *const kPlacers[] = {"search", "round_robin", "random"};
  weir_graph *graph = NULL;
  task_job job;
  task_world one;
  load(s, name, &graph);
  task_job_open(&s->world.env, graph, inference, &job);
  task_world_open(&s->world.env, &job, NULL, NULL, 0, &one);
  for (int i = 0; i < kSteps; i++) task_world_step(&one, name);
  for (size_t i = 0; i < sizeof kPlacers / sizeof kPlacers[0]; i++)
    check_way(s, graph, &job, &one, kPlacers[i], name);
  task_world_close(&one);
  task_job_close(&job);
  weir_graph_unref(graph);
}

static void the_bits_of_one_process(void **state) {
  (void)state;
  static const struct {
    const char *name;
    bool inference;
  } kGraphs[] = {{"tiny_matmul.weir.yaml", true}, {"conv_bn.weir.yaml", true},
                 {"matmul_mesh.weir.yaml", true}, {"mlp_mesh.weir.yaml", true},
                 {"lstm_scan.weir.yaml", true},   {"logistic.weir.yaml", false},
                 {"lenet_train.weir.yaml", false}};
  for (size_t i = 0; i < sizeof kGraphs / sizeof kGraphs[0]; i++) {
    scene s;
    open_scene(&s);
    check_graph(&s, kGraphs[i].name, kGraphs[i].inference);
    close_scene(&s);
  }
}

/* ---- Sessions side by side */

enum { kSides = 3 };

typedef struct side {
  weir_graph *graph;
  weir_placing *placing;
  weir_plan *plan;
  weir_remote *remote;
  task_job job;
  task_world one, tasks;
  pthread_t thread;
} side;

static void open_side(scene *s, const char *name, bool inference, side *it) {
  load(s, name, &it->graph);
  weir_place_request request = {
      .graph = it->graph,
      .cluster = "ps=2,worker=2",
      .options = {.placer = weir_placer_find("round_robin"),
                  .strictness = WEIR_PLACE_WARN}};
  task_job_open(&s->world.env, it->graph, inference, &it->job);
  task_world_open(&s->world.env, &it->job, NULL, NULL, 0, &it->one);
  assert_ok(weir_placing_create(s->world.env.alloc, &request, &it->placing,
                                &it->plan, &s->err),
            &s->err);
  open_remote(s, &it->job, it->placing, !inference, &it->remote, &it->tasks);
}

static void close_side(side *it) {
  task_world_close(&it->tasks);
  weir_dist_remote_release(it->remote);
  task_world_close(&it->one);
  weir_plan_unref(it->plan);
  weir_placing_unref(it->placing);
  task_job_close(&it->job);
  weir_graph_unref(it->graph);
}

static void *run_side(void *self) {
  side *it = self;
  for (int i = 0; i < kSteps; i++) task_world_step(&it->tasks, "beside");
  return NULL;
}

static void compare_side(side *it, int steps, const char *what) {
  for (int i = 0; i < steps; i++) task_world_step(&it->one, what);
  task_world_compare(&it->one, &it->tasks, what);
}

/* Two sessions of one graph and one of another have programs and variables of
 * their own, also while all of them run and when one of them is over. */
static void sessions_do_not_meet(void **state) {
  (void)state;
  scene s;
  side sides[kSides];
  memset(sides, 0, sizeof sides);
  open_scene(&s);
  open_cluster(&s);
  open_side(&s, "logistic.weir.yaml", false, &sides[0]);
  open_side(&s, "mlp_mesh.weir.yaml", true, &sides[1]);
  open_side(&s, "logistic.weir.yaml", false, &sides[2]);
  for (int i = 0; i < kSides; i++)
    for (int k = 0; k <= i; k++) task_world_step(&sides[i].tasks, "in turn");
  for (int i = 0; i < kSides; i++) compare_side(&sides[i], i + 1, "in turn");
  for (int i = 0; i < kSides; i++)
    assert_int_equal(
        pthread_create(&sides[i].thread, NULL, run_side, &sides[i]), 0);
  for (int i = 0; i < kSides; i++) pthread_join(sides[i].thread, NULL);
  for (int i = 0; i < kSides; i++) compare_side(&sides[i], kSteps, "beside");
  close_side(&sides[0]);
  for (int i = 1; i < kSides; i++) {
    task_world_step(&sides[i].tasks, "after");
    compare_side(&sides[i], 1, "after");
    close_side(&sides[i]);
  }
  close_cluster(&s);
  close_scene(&s);
}

static void a_task_that_ends_is_named(void **state) {
  (void)state;
  scene s;
  weir_graph *graph = NULL;
  weir_placing *placing = NULL;
  weir_plan *plan = NULL;
  weir_remote *remote = NULL;
  task_job job;
  task_world tasks;
  open_scene(&s);
  load(&s, "conv_bn.weir.yaml", &graph);
  task_job_open(&s.world.env, graph, true, &job);
  weir_place_request request = {
      .graph = graph,
      .cluster = "ps=2,worker=2",
      .options = {.placer = weir_placer_find("round_robin"),
                  .strictness = WEIR_PLACE_WARN}};
  assert_ok(
      weir_placing_create(s.world.env.alloc, &request, &placing, &plan, &s.err),
      &s.err);
  open_cluster(&s);
  open_remote(&s, &job, placing, false, &remote, &tasks);
  task_world_step(&tasks, "before");
  end_server(&s.servers[3]);
  tasks.may_fail = true;
  task_world_step(&tasks, "after");
  assert_string_equal(tasks.errors[0].id, "W7020");
  assert_non_null(strstr(tasks.errors[0].message, "worker:1 at local:"));
  task_world_close(&tasks);
  weir_dist_remote_release(remote);
  weir_plan_unref(plan);
  weir_placing_unref(placing);
  task_job_close(&job);
  weir_graph_unref(graph);
  close_cluster(&s);
  close_scene(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_bits_of_one_process),
      cmocka_unit_test(sessions_do_not_meet),
      cmocka_unit_test(a_task_that_ends_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
