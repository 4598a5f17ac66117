/* SPDX-License-Identifier: Apache-2.0
 * Drivers that share variables: two tasks, each with a number, a graph that
 * adds to both, and several drivers in threads of their own. */
#include <stdlib.h>
#include <string.h>

#include "kernels/kernel.h"
#include "placement/solve/placer.h"
#include "runtime/base/env_system.h"
#include "runtime/dist/bundle/bundle.h"
#include "runtime/dist/cluster/cluster.h"
#include "runtime/dist/cluster/cluster_session.h"
#include "runtime/dist/serve/serve.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_snapshot.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/graph/load/load.h"
#include "runtime/io/checkpoint/checkpoint_owners.h"
#include "tests/dist/local_transports.h"
#include "tests/exec/support.h"

enum { TASKS = 2, DRIVERS = 3, STEPS = 30 };

static const char kGraph[] =
    "weir: 1\n"
    "inputs: {by: 'i64[] = 1'}\n"
    "nodes:\n"
    "  a: var([], dtype=i64, init=0) @ /job:ps/task:0\n"
    "  b: var([], dtype=i64, init=0) @ /job:ps/task:1\n"
    "  k: var([], dtype=i64, init=5) @ /job:ps/task:1\n"
    "  na: assign_add(a, by)\n"
    "  nb: assign_add(b, by)\n"
    "  ra: add(a, 0)\n"
    "  rb: add(b, 0)\n"
    "  rk: mul(k, 1) @ /job:ps/task:0\n"
    "outputs: {na: na, nb: nb, ra: ra, rb: rb, rk: rk}\n";

typedef struct scene {
  exec_world world, outside; /* of drivers; of tasks */
  weir_net_hub *hub;
  weir_transports transports;
  weir_serve *serves[TASKS];
  pthread_t threads[TASKS];
  weir_error err;
} scene;

typedef struct driver {
  scene *s;
  weir_graph *graph;
  weir_placing *placing;
  weir_dist *dist;
  weir_remote *remote;
  weir_pool *pool;
  weir_exec_session *session;
  pthread_t thread;
  weir_error err;
} driver;

static void *serve(void *self) {
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_serve_run(self, &err), &err);
  return NULL;
}

static void open_scene(scene *s) {
  memset(s, 0, sizeof *s);
  s->err.struct_size = sizeof s->err;
  exec_world_init(&s->world);
  exec_world_init(&s->outside);
  s->world.env.fs = weir_env_system()->fs;
  s->world.env.random = weir_env_system()->random;
  assert_ok(weir_net_hub_create(&s->outside.env, &s->hub, &s->err), &s->err);
  s->transports = local_transports(s->hub);
  for (uint32_t i = 0; i < TASKS; i++) {
    weir_serve_options o = {.transports = &s->transports,
                            .job = "ps",
                            .index = i,
                            .address = "local:",
                            .threads = 1};
    assert_ok(weir_serve_create(&s->outside.env, &o, &s->serves[i], &s->err),
              &s->err);
    assert_int_equal(pthread_create(&s->threads[i], NULL, serve, s->serves[i]),
                     0);
  }
}

static void close_scene(scene *s) {
  for (uint32_t i = 0; i < TASKS; i++) weir_serve_stop(s->serves[i]);
  for (uint32_t i = 0; i < TASKS; i++) pthread_join(s->threads[i], NULL);
  for (uint32_t i = 0; i < TASKS; i++) weir_serve_release(s->serves[i]);
  weir_net_hub_release(s->hub);
  exec_world_check_empty(&s->world);
  exec_world_check_empty(&s->outside);
}

static weir_status connect(driver *d, uint8_t number, const char *share) {
  scene *s = d->s;
  weir_driver_task tasks[TASKS];
  for (uint32_t i = 0; i < TASKS; i++)
    tasks[i] = (weir_driver_task){"ps", i, weir_serve_address(s->serves[i])};
  weir_dist_options options = {.transports = &s->transports,
                               .tasks = tasks,
                               .task_count = TASKS,
                               .job_id = {number},
                               .share = share};
  return weir_dist_open(&s->world.env, &options, &d->dist, &d->err);
}

static weir_status open_session(driver *d, const char *text) {
  const weir_env *env = &d->s->world.env;
  weir_plan *plan = NULL;
  weir_load_options load = {.registry = weir_builtin_registry(),
                            .keep_sources = true};
  assert_ok(weir_graph_load_text(env, weir_sv_from(text), "g", &load, &d->graph,
                                 &d->err),
            &d->err);
  weir_place_request request = {
      .graph = d->graph,
      .cluster = "ps=2",
      .inference = true,
      .options = {.placer = weir_placer_find("search"),
                  .strictness = WEIR_PLACE_STRICT}};
  assert_ok(
      weir_placing_create(env->alloc, &request, &d->placing, &plan, &d->err),
      &d->err);
  weir_plan_unref(plan);
  d->pool = exec_pool(&d->s->world, 1);
  weir_bundle bundle = {.sources = d->graph->sources, .placing = d->placing};
  WEIR_TRY(weir_dist_remote(d->dist, &bundle, d->graph, &d->remote, &d->err));
  weir_session_options o = {.placing = d->placing, .remote = d->remote};
  return weir_exec_session_create(env, d->pool, d->graph, &o, &d->session,
                                  &d->err);
}

static void begin(scene *s, driver *d) {
  *d = (driver){.s = s, .err = WEIR_ERROR_INIT};
}

static void open_driver(scene *s, driver *d, uint8_t number) {
  begin(s, d);
  assert_ok(connect(d, number, "both"), &d->err);
  assert_ok(open_session(d, kGraph), &d->err);
}

static void close_driver(driver *d) {
  weir_exec_session_release(d->session);
  weir_dist_remote_release(d->remote);
  weir_dist_close(d->dist, false);
  weir_pool_release(d->pool);
  weir_placing_unref(d->placing);
  weir_graph_unref(d->graph);
}

/* The values of two outputs. */
static weir_status run(driver *d, const char *one, const char *two,
                       int64_t out[2]) {
  weir_exec_fetch f[2] = {
      {.value = weir_graph_find_value(d->graph, weir_sv_from(one))},
      {.value = weir_graph_find_value(d->graph, weir_sv_from(two))}};
  weir_exec_request request = {.fetches = f, .fetch_count = 2};
  weir_status s = weir_exec_run(d->session, &request, &d->err);
  for (int i = 0; i < 2; i++) {
    if (s == WEIR_OK) out[i] = *(const int64_t *)f[i].tensor->data;
    weir_tensor_unref(f[i].tensor);
  }
  return s;
}

static weir_status set(driver *d, const char *name, int64_t value) {
  weir_tensor *t = NULL;
  weir_shape shape = {.rank = 0};
  assert_ok(weir_tensor_create_shaped(&d->s->world.memory.base, WEIR_I64,
                                      &shape, &t, &d->err),
            &d->err);
  *(int64_t *)t->data = value;
  weir_node_id node = weir_graph_find_node(d->graph, weir_sv_from(name));
  weir_status s = weir_exec_variable_set(d->session, node, t, &d->err);
  weir_tensor_unref(t);
  return s;
}

static int64_t get(driver *d, const char *name) {
  weir_tensor *t = NULL;
  weir_node_id node = weir_graph_find_node(d->graph, weir_sv_from(name));
  assert_ok(weir_exec_variable_get(d->session, node, &t, &d->err), &d->err);
  int64_t value = *(const int64_t *)t->data;
  weir_tensor_unref(t);
  return value;
}

/* ---- Tests */

/* Adds and reads in turn; what is read together is of one step. */
static void *add_and_read(void *self) {
  driver *d = self;
  int64_t last = 0, v[2];
  for (int i = 0; i < STEPS; i++) {
    assert_ok(run(d, "na", "nb", v), &d->err);
    assert_int_equal(v[0], v[1]);
    assert_true(v[0] > last);
    last = v[0];
    assert_ok(run(d, "ra", "rb", v), &d->err);
    assert_int_equal(v[0], v[1]);
    assert_true(v[0] >= last);
    last = v[0];
  }
  return NULL;
}

static void no_step_is_lost(void **state) {
  (void)state;
  scene s;
  driver d[DRIVERS];
  open_scene(&s);
  for (uint8_t i = 0; i < DRIVERS; i++) open_driver(&s, &d[i], i + 1);
  for (int i = 0; i < DRIVERS; i++)
    assert_int_equal(pthread_create(&d[i].thread, NULL, add_and_read, &d[i]),
                     0);
  for (int i = 0; i < DRIVERS; i++) pthread_join(d[i].thread, NULL);
  for (int i = 0; i < DRIVERS; i++) {
    assert_int_equal(get(&d[i], "a"), DRIVERS * STEPS);
    assert_int_equal(get(&d[i], "b"), DRIVERS * STEPS);
  }
  /* Two threads of one driver share its turns. */
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&d[i].thread, NULL, add_and_read, &d[0]),
                     0);
  for (int i = 0; i < 2; i++) pthread_join(d[i].thread, NULL);
  assert_int_equal(get(&d[1], "b"), (DRIVERS + 2) * STEPS);
  /* The values stay with the last driver, and end with it. */
  close_driver(&d[0]);
  close_driver(&d[1]);
  assert_int_equal(get(&d[2], "a"), (DRIVERS + 2) * STEPS);
  close_driver(&d[2]);
  open_driver(&s, &d[0], 9);
  assert_int_equal(get(&d[0], "a"), 0);
  close_driver(&d[0]);
  close_scene(&s);
}

/* A checkpoint holds the values of one step, whatever follows. */
static void what_is_held_is_of_one_step(void **state) {
  (void)state;
  scene s;
  driver d[2];
  weir_checkpoint_owners *held = NULL;
  int64_t values[2], v[2];
  open_scene(&s);
  open_driver(&s, &d[0], 1);
  open_driver(&s, &d[1], 2);
  weir_node_id nodes[2] = {weir_graph_find_node(d[0].graph, WEIR_SV_LIT("a")),
                           weir_graph_find_node(d[0].graph, WEIR_SV_LIT("b"))};
  assert_int_equal(pthread_create(&d[1].thread, NULL, add_and_read, &d[1]), 0);
  for (int i = 0; i < 8; i++) {
    assert_ok(
        weir_exec_variables_hold(d[0].session, nodes, 2, &held, &d[0].err),
        &d[0].err);
    assert_ok(run(&d[0], "na", "nb", v), &d[0].err);
    for (uint32_t k = 0; k < 2; k++)
      assert_ok(held->vt->read(held, k, 0, &values[k], 8, &d[0].err),
                &d[0].err);
    assert_int_equal(values[0], values[1]);
    assert_true(values[0] < v[0]);
    held->vt->release(held);
  }
  pthread_join(d[1].thread, NULL);
  assert_int_equal(get(&d[0], "a"), STEPS + 8);
  close_driver(&d[0]);
  close_driver(&d[1]);
  close_scene(&s);
}

/* Variables are set while one driver alone is there; a later one finds them,
 * one that is compiled in, too. */
static void set_by_the_first_alone(void **state) {
  (void)state;
  scene s;
  driver d[2];
  int64_t v[2];
  open_scene(&s);
  open_driver(&s, &d[0], 1);
  assert_ok(run(&d[0], "rk", "ra", v), &d[0].err);
  assert_int_equal(v[0], 5);
  assert_ok(set(&d[0], "a", 100), &d[0].err);
  assert_ok(set(&d[0], "k", 7), &d[0].err);
  open_driver(&s, &d[1], 2);
  assert_true(d[1].remote->found);
  assert_false(d[0].remote->found);
  assert_ok(run(&d[1], "rk", "ra", v), &d[1].err);
  assert_int_equal(v[0], 7);
  assert_int_equal(v[1], 100);
  for (int i = 0; i < 2; i++) {
    assert_int_not_equal(set(&d[i], "a", 1), WEIR_OK);
    assert_string_equal(d[i].err.id, "W7088");
    d[i].err = (weir_error)WEIR_ERROR_INIT;
  }
  assert_ok(run(&d[0], "na", "rk", v), &d[0].err);
  assert_int_equal(v[0], 101);
  close_driver(&d[0]);
  assert_ok(set(&d[1], "a", 1), &d[1].err); /* alone again */
  assert_int_equal(get(&d[1], "a"), 1);
  close_driver(&d[1]);
  close_scene(&s);
}

/* |text|: kGraph with |from| replaced. */
static char *changed(const char *from, const char *to) {
  const char *at = strstr(kGraph, from);
  size_t n = sizeof kGraph + strlen(to);
  char *text = malloc(n);
  assert_non_null(at);
  assert_non_null(text);
  snprintf(text, n, "%.*s%s%s", (int)(at - kGraph), kGraph, to,
           at + strlen(from));
  return text;
}

static void other_graphs_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *from, *to, *says;
  } kCases[] = {
      {"k: var([], dtype=i64, init=5)", "k: var([2], dtype=i64, init=5)",
       "variable k is i64[2] in this graph, i64[] in the share"},
      {"k: var([], dtype=i64, init=5)", "k: var([], dtype=i32, init=5)",
       "variable k is i32[] in this graph, i64[] in the share"},
      {"  rb: add(b, 0)\n", "  rb: add(b, 0)\n  c: assign(k, by)\n",
       "variable k is assigned in this graph, and is not in that of the share"},
      {"  k: var([], dtype=i64, init=5)",
       "  z: var([], dtype=i64, init=5)\n  k: var([], dtype=i64, init=5)",
       "variable z of this graph is not in the share here"},
      {"b: var([], dtype=i64, init=0) @ /job:ps/task:1",
       "b: var([], dtype=i64, init=0) @ /job:ps/task:0", "variable b"},
      {"a: var([], dtype=i64, init=0) @ /job:ps/task:0",
       "a: var([], dtype=i64, init=0) @ /job:ps/task:1",
       "the first variable is on ps:1 with this graph, and on ps:0 in the "
       "share"}};
  scene s;
  driver first, d;
  int64_t v[2];
  open_scene(&s);
  open_driver(&s, &first, 1);
  assert_ok(run(&first, "na", "nb", v), &first.err);
  for (uint8_t i = 0; i < sizeof kCases / sizeof kCases[0]; i++) {
    char *text = changed(kCases[i].from, kCases[i].to);
    begin(&s, &d);
    assert_ok(connect(&d, i + 2, "both"), &d.err);
    assert_int_not_equal(open_session(&d, text), WEIR_OK);
    assert_string_equal(d.err.id, "W7086");
    if (strstr(d.err.message, kCases[i].says) == NULL)
      fail_msg("%s, not %s", d.err.message, kCases[i].says);
    close_driver(&d);
    free(text);
    assert_ok(run(&first, "na", "nb", v), &first.err); /* it goes on */
    assert_int_equal(v[0], i + 2);
    assert_int_equal(v[1], i + 2);
  }
  close_driver(&first);
  close_scene(&s);
}

static void other_shares_are_busy(void **state) {
  (void)state;
  static const char *const kShares[] = {"other", NULL};
  scene s;
  driver first, d;
  int64_t v[2];
  open_scene(&s);
  open_driver(&s, &first, 1);
  for (uint8_t i = 0; i < 2; i++) {
    begin(&s, &d);
    assert_int_not_equal(connect(&d, i + 2, kShares[i]), WEIR_OK);
    assert_string_equal(d.err.id, "W7024");
    assert_non_null(strstr(d.err.message, "in share both"));
  }
  assert_ok(run(&first, "na", "nb", v), &first.err);
  close_driver(&first);
  begin(&s, &d);
  assert_ok(connect(&d, 7, NULL), &d.err); /* free for anybody */
  begin(&s, &first);
  assert_int_not_equal(connect(&first, 8, "both"), WEIR_OK);
  assert_string_equal(first.err.id, "W7024");
  close_driver(&d);
  close_scene(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_step_is_lost),
      cmocka_unit_test(what_is_held_is_of_one_step),
      cmocka_unit_test(set_by_the_first_alone),
      cmocka_unit_test(other_graphs_are_refused),
      cmocka_unit_test(other_shares_are_busy),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
