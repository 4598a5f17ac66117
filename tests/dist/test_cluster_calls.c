/* SPDX-License-Identifier: Apache-2.0
 * A driver's process against tasks that follow a script: calls from many
 * threads, values of all sizes, decisions, deadlines, losses. */
#include <stdlib.h>
#include <string.h>

#include "placement/place.h"
#include "runtime/base/env_system.h"
#include "runtime/dist/bundle/bundle.h"
#include "runtime/dist/cluster/cluster.h"
#include "runtime/dist/cluster/cluster_session.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_snapshot.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/graph/load/load.h"
#include "tests/dist/local_transports.h"
#include "tests/dist/script_task.h"
#include "tests/exec/support.h"

enum { PS, WORKER, TASKS };

typedef struct scene {
  exec_world world, outside; /* of the driver; of the tasks */
  weir_net_hub *hub;
  weir_transports transports;
  weir_pool *pool;
  weir_graph *graph;
  weir_placing *placing;
  script_task *tasks[TASKS];
  weir_dist *dist;
  weir_remote *remote;
  weir_exec_session *session;
  weir_tensor *x;
  weir_error err;
} scene;

static void load(scene *s, int n) {
  char text[600];
  weir_load_options options = {.registry = weir_builtin_registry(),
                               .keep_sources = true};
  snprintf(text, sizeof text,
           "weir: 1\n"
           "inputs: {x: 'f32[%d]'}\n"
           "nodes:\n"
           "  v: {op: var, attrs: {shape: [%d], init: ones()}, device: "
           "/job:ps}\n"
           "  y: {op: tanh, in: [x], device: '/job:worker/task:0'}\n"
           "  a: {op: add, in: [v, x], device: /job:ps}\n"
           "  u: assign(v, a)\n"
           "outputs: [y, u]\n"
           "placement: [{match: x, device: '/job:worker/task:0'}]\n",
           n, n);
  assert_ok(weir_graph_load_text(&s->world.env, weir_sv_from(text), "calls",
                                 &options, &s->graph, &s->err),
            &s->err);
  weir_place_request request = {
      .graph = s->graph, .cluster = "ps=1,worker=1", .options = {.moves = 5}};
  weir_plan *plan = NULL;
  assert_ok(weir_placing_create(s->world.env.alloc, &request, &s->placing,
                                &plan, &s->err),
            &s->err);
  weir_plan_unref(plan);
  weir_shape shape = weir_shape_of(1, (int64_t[]){n});
  assert_ok(weir_tensor_create_shaped(s->world.env.alloc, WEIR_F32, &shape,
                                      &s->x, &s->err),
            &s->err);
  for (int i = 0; i < n; i++) ((float *)s->x->data)[i] = (float)i;
}

static weir_status open_dist(scene *s, const char *const *addresses,
                             const weir_dist_options *given) {
  weir_driver_task tasks[TASKS] = {{"ps", 0, addresses[PS]},
                                   {"worker", 0, addresses[WORKER]}};
  weir_dist_options options = *given;
  options.transports = &s->transports;
  options.tasks = tasks;
  options.task_count = TASKS;
  return weir_dist_open(&s->world.env, &options, &s->dist, &s->err);
}

/* |how|: of the worker. */
static void open_scene(scene *s, int n, const script_options *how,
                       const weir_dist_options *options) {
  memset(s, 0, sizeof *s);
  s->err.struct_size = sizeof s->err;
  exec_world_init(&s->world);
  exec_world_init(&s->outside);
  s->world.env.fs = weir_env_system()->fs; /* it is not read */
  assert_ok(weir_net_hub_create(&s->outside.env, &s->hub, &s->err), &s->err);
  s->transports = local_transports(s->hub);
  s->pool = exec_pool(&s->world, 2);
  load(s, n);
  const char *addresses[TASKS];
  for (int i = 0; i < TASKS; i++) {
    script_options o = *how;
    if (i == PS) o.stuck = o.fails = false;
    o.hub = s->hub;
    o.env = &s->outside.env;
    o.job = i == PS ? "ps" : "worker";
    o.written = s->graph->outputs[1].value;
    o.variable_bytes = s->x->bytes;
    s->tasks[i] = script_task_start(&o);
    addresses[i] = script_task_address(s->tasks[i]);
  }
  assert_ok(open_dist(s, addresses, options), &s->err);
  assert_true(weir_dist_profile(s->dist) != 0);
  weir_bundle bundle = {.sources = s->graph->sources, .placing = s->placing};
  assert_ok(weir_dist_remote(s->dist, &bundle, s->graph, &s->remote, &s->err),
            &s->err);
  weir_session_options session = {.placing = s->placing, .remote = s->remote};
  assert_ok(weir_exec_session_create(&s->world.env, s->pool, s->graph, &session,
                                     &s->session, &s->err),
            &s->err);
}

static void close_scene(scene *s) {
  weir_exec_session_release(s->session);
  weir_dist_remote_release(s->remote);
  weir_dist_close(s->dist, true);
  for (int i = 0; i < TASKS; i++) script_task_stop(s->tasks[i]);
  weir_tensor_unref(s->x);
  weir_placing_unref(s->placing);
  weir_graph_unref(s->graph);
  weir_pool_release(s->pool);
  weir_net_hub_release(s->hub);
  exec_world_check_empty(&s->world);
  exec_world_check_empty(&s->outside);
}

/* Runs output |k|; its tensor is the caller's. */
static weir_status run(scene *s, uint32_t k, const weir_run_options *options,
                       weir_tensor **out, weir_error *err) {
  weir_error why = WEIR_ERROR_INIT;
  weir_exec_feed feed = {s->graph->inputs[0].value, s->x};
  weir_exec_fetch fetch = {.value = s->graph->outputs[k].value, .error = &why};
  weir_exec_request request = {.feeds = &feed,
                               .feed_count = 1,
                               .fetches = &fetch,
                               .fetch_count = 1,
                               .options = options};
  weir_status status = weir_exec_run(s->session, &request, err);
  if (status == WEIR_OK)
    *out = fetch.tensor;
  else
    weir_tensor_unref(fetch.tensor);
  return status;
}

static void same_as_x(scene *s) {
  weir_tensor *y = NULL;
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(run(s, 0, NULL, &y, &err), &err);
  assert_int_equal(y->bytes, s->x->bytes);
  assert_memory_equal(y->data, s->x->data, y->bytes);
  weir_tensor_unref(y);
}

/* The session goes on. */
static void is_alive(scene *s) {
  weir_tensor *v = NULL;
  weir_node_id id = weir_graph_find_node(s->graph, WEIR_SV_LIT("v"));
  assert_ok(weir_exec_variable_get(s->session, id, &v, &s->err), &s->err);
  weir_tensor_unref(v);
}

/* ---- The tests */

static void a_start_that_fails(weir_dist_options options, const char *id,
                               const char *words) {
  scene s = {.err = WEIR_ERROR_INIT};
  exec_world_init(&s.world);
  exec_world_init(&s.outside);
  assert_ok(weir_net_hub_create(&s.outside.env, &s.hub, &s.err), &s.err);
  s.transports = local_transports(s.hub);
  script_options how = {.hub = s.hub, .env = &s.outside.env, .job = "ps"};
  s.tasks[PS] = script_task_start(&how);
  const char *addresses[TASKS] = {script_task_address(s.tasks[PS]),
                                  "local:nobody"};
  assert_error(open_dist(&s, addresses, &options), &s.err, id);
  assert_non_null(strstr(s.err.message, words));
  assert_null(strstr(s.err.message, "ps:0"));
  if (strcmp(id, "W7022") == 0) {
    const char *once = strstr(s.err.message, "worker:0");
    assert_null(strstr(once + 1, "worker:0"));
    assert_null(strstr(strstr(once, "local:nobody") + 1, "local:nobody"));
  }
  assert_null(s.dist);
  script_task_stop(s.tasks[PS]);
  weir_net_hub_release(s.hub);
  exec_world_check_empty(&s.world);
  exec_world_check_empty(&s.outside);
}

static weir_status third_time(void *self, weir_error *err) {
  return ++*(int *)self < 3
             ? WEIR_OK
             : weir_fail(err, WEIR_W5005, NULL, "nobody will come");
}

static void tasks_that_are_missing_are_named(void **state) {
  (void)state;
  int looks = 0;
  a_start_that_fails((weir_dist_options){.start_ns = 100000000}, "W7022",
                     "worker:0 at local:nobody");
  assert_int_equal(weir_error_exit_code("W7022"), 138);
  /* Long before the time is over. */
  a_start_that_fails((weir_dist_options){.start_ns = INT64_MAX / 4,
                                         .while_starting = third_time,
                                         .while_starting_self = &looks},
                     "W5005", "nobody will come");
  assert_int_equal(looks, 3);
}

static void values_of_all_sizes(void **state) {
  (void)state;
  static const int kSizes[] = {1, 2048, 2049, 700000};
  for (size_t i = 0; i < sizeof kSizes / sizeof kSizes[0]; i++) {
    scene s;
    open_scene(&s, kSizes[i], &(script_options){.stuck = false},
               &(weir_dist_options){.epoch = 3});
    for (int k = 0; k < 3; k++) same_as_x(&s);
    weir_traffic *came = weir_dist_traffic(s.dist);
    assert_int_equal(atomic_load(&came->values), 3);
    assert_int_equal(atomic_load(&came->bytes), 3 * s.x->bytes);
    char text[WEIR_TRAFFIC_TEXT];
    assert_non_null(strstr(weir_traffic_print(came, text), "3 values, "));
    script_heard *heard = script_task_heard(s.tasks[WORKER]);
    assert_int_equal(atomic_load(&heard->steps), 3);
    assert_int_equal(atomic_load(&heard->programs), 2);
    assert_int_equal(atomic_load(&heard->blobs), 2);
    assert_int_equal(atomic_load(&script_task_heard(s.tasks[PS])->programs), 1);
    close_scene(&s);
  }
}

static void *run_many(void *self) {
  for (int i = 0; i < 10; i++) same_as_x(self);
  return NULL;
}

static void many_threads(void **state) {
  (void)state;
  scene s;
  pthread_t threads[4];
  open_scene(&s, 5000, &(script_options){.stuck = false},
             &(weir_dist_options){.epoch = 0});
  for (int i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, run_many, &s), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  close_scene(&s);
}

static weir_status refuse(void *self, weir_error *err) {
  (void)self;
  return weir_fail(err, WEIR_W5005, NULL, "not this one");
}

static void writers_are_decided(bool confirms, const char *last_words) {
  scene s;
  weir_tensor *u = NULL;
  open_scene(&s, 3000, &(script_options){.confirms = confirms},
             &(weir_dist_options){.epoch = 0});
  script_heard *ps = script_task_heard(s.tasks[PS]);
  for (int i = 1; i <= 2; i++) {
    assert_ok(run(&s, 1, NULL, &u, &s.err), &s.err);
    assert_true(((float *)u->data)[2999] == (float)i);
    weir_tensor_unref(u);
  }
  weir_run_options options = {.accept = refuse};
  assert_error(run(&s, 1, &options, &u, &s.err), &s.err, "W5005");
  same_as_x(&s);
  assert_ok(run(&s, 1, NULL, &u, &s.err), &s.err);
  weir_tensor_unref(u);
  /* When a fetch is here, all messages sent before it are here too. */
  is_alive(&s);
  assert_int_equal(atomic_load(&ps->commits), 3);
  assert_int_equal(atomic_load(&ps->aborts), 1);
  script_task_stop(s.tasks[PS]);
  s.tasks[PS] = NULL;
  assert_error(run(&s, 1, NULL, &u, &s.err), &s.err, "W7020");
  assert_non_null(strstr(s.err.message, "ps:0 at local:"));
  assert_non_null(strstr(s.err.message, last_words));
  close_scene(&s);
}

/* Only a commit that the task has confirmed is reported as one that is kept. */
static void writers_are_decided_on(void **state) {
  (void)state;
  writers_are_decided(true, "; the last committed step is 5");
  writers_are_decided(false, "have committed is 0, and step 5 may be lost");
}

static void variables_go_both_ways(void **state) {
  (void)state;
  static const int kSizes[] = {4, 300000};
  for (int i = 0; i < 2; i++) {
    scene s;
    weir_tensor *v = NULL;
    open_scene(&s, kSizes[i], &(script_options){.stuck = false},
               &(weir_dist_options){.epoch = 0});
    weir_node_id id = weir_graph_find_node(s.graph, WEIR_SV_LIT("v"));
    assert_ok(weir_exec_variable_set(s.session, id, s.x, &s.err), &s.err);
    assert_ok(weir_exec_variable_get(s.session, id, &v, &s.err), &s.err);
    assert_memory_equal(v->data, s.x->data, v->bytes);
    weir_tensor_unref(v);
    close_scene(&s);
  }
}

static void a_node_that_fails(void **state) {
  (void)state;
  scene s;
  weir_tensor *y = NULL;
  open_scene(&s, 2500, &(script_options){.fails = true},
             &(weir_dist_options){.epoch = 0});
  assert_error(run(&s, 0, NULL, &y, &s.err), &s.err, "W5004");
  assert_error(run(&s, 0, NULL, &y, &s.err), &s.err, "W5004");
  is_alive(&s);
  close_scene(&s);
}

static void *cancel_soon(void *self) {
  scene *s = ((void **)self)[0];
  atomic_bool *flag = ((void **)self)[1];
  script_heard *heard = script_task_heard(s->tasks[WORKER]);
  while (atomic_load(&heard->steps) < 2) sched_yield();
  atomic_store(flag, true);
  return NULL;
}

static void deadlines_and_cancelling(void **state) {
  (void)state;
  scene s;
  weir_tensor *y = NULL;
  atomic_bool cancel = false;
  pthread_t thread;
  open_scene(&s, 2500, &(script_options){.stuck = true},
             &(weir_dist_options){.epoch = 0});
  weir_run_options options = {.deadline_ns = exec_now_ns(NULL) + 50000000};
  assert_error(run(&s, 0, &options, &y, &s.err), &s.err, "W5006");
  void *both[2] = {&s, &cancel};
  assert_int_equal(pthread_create(&thread, NULL, cancel_soon, both), 0);
  options = (weir_run_options){.cancel = &cancel};
  assert_error(run(&s, 0, &options, &y, &s.err), &s.err, "W5005");
  pthread_join(thread, NULL);
  is_alive(&s);
  close_scene(&s);
}

static void *stop_worker(void *self) {
  scene *s = self;
  script_heard *heard = script_task_heard(s->tasks[WORKER]);
  while (atomic_load(&heard->steps) < 1) sched_yield();
  script_task_stop(s->tasks[WORKER]);
  s->tasks[WORKER] = NULL;
  return NULL;
}

static void a_lost_task_is_named(void **state) {
  (void)state;
  scene s;
  weir_tensor *y = NULL;
  weir_node_id id;
  pthread_t thread;
  open_scene(&s, 2500, &(script_options){.stuck = true},
             &(weir_dist_options){.epoch = 0});
  assert_int_equal(pthread_create(&thread, NULL, stop_worker, &s), 0);
  assert_error(run(&s, 0, NULL, &y, &s.err), &s.err, "W7020");
  assert_non_null(strstr(s.err.message, "worker:0 at local:"));
  assert_int_equal(weir_error_exit_code(s.err.id), 138);
  pthread_join(thread, NULL);
  weir_error again = WEIR_ERROR_INIT;
  assert_error(run(&s, 1, NULL, &y, &again), &again, "W7020");
  assert_string_equal(again.message, s.err.message);
  id = weir_graph_find_node(s.graph, WEIR_SV_LIT("v"));
  assert_error(weir_exec_variable_get(s.session, id, &y, &again), &again,
               "W7020");
  close_scene(&s);
}

static void a_step_that_hangs_ends_all(void **state) {
  (void)state;
  static const script_options kHow[] = {{.stuck = true}, {.mute = true}};
  for (int i = 0; i < 2; i++) {
    scene s;
    weir_tensor *y = NULL;
    open_scene(&s, 9000, &kHow[i], &(weir_dist_options){.step_ns = 100000000});
    assert_error(run(&s, 0, NULL, &y, &s.err), &s.err, "W7021");
    assert_non_null(strstr(s.err.message, "worker:0"));
    assert_error(run(&s, 0, NULL, &y, &s.err), &s.err, "W7021");
    close_scene(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tasks_that_are_missing_are_named),
      cmocka_unit_test(values_of_all_sizes),
      cmocka_unit_test(many_threads),
      cmocka_unit_test(writers_are_decided_on),
      cmocka_unit_test(variables_go_both_ways),
      cmocka_unit_test(a_node_that_fails),
      cmocka_unit_test(deadlines_and_cancelling),
      cmocka_unit_test(a_lost_task_is_named),
      cmocka_unit_test(a_step_that_hangs_ends_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
