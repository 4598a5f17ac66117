/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "runtime/exec/run/trace.h"
#include "runtime/exec/session/binding.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_vars.h"
#include "tests/exec/maker.h"

/* Sessions with time, threads and little memory. */

typedef struct bench {
  exec_world world;
  weir_pool *pool;
  weir_graph *graph;
  weir_exec_session *session;
  maker m;
  weir_error err;
} bench;

static void open_bench(bench *t, int threads) {
  memset(t, 0, sizeof *t);
  t->err.struct_size = sizeof t->err;
  exec_world_init(&t->world);
  t->pool = exec_pool(&t->world, threads);
  begin(&t->m, &t->world.memory.base);
}

static void open_session(bench *t) {
  t->graph = finish(&t->m);
  assert_ok(weir_exec_session_create(&t->world.env, t->pool, t->graph, NULL,
                                     &t->session, &t->err),
            &t->err);
}

static void close_bench(bench *t) {
  weir_exec_session_release(t->session);
  weir_graph_unref(t->graph);
  weir_pool_release(t->pool);
  exec_world_check_empty(&t->world);
}

static weir_value_id hold(bench *t, const char *name, weir_value_id in,
                          int64_t ns) {
  weir_named_attr named[] = {{"cost_ns", {.kind = WEIR_ATTR_INT, .i = ns}},
                             {"out_bytes", {.kind = WEIR_ATTR_INT, .i = 4}},
                             {NULL, {0}}};
  return add_attrs(&t->m, name, "task", in == WEIR_NO_VALUE ? 0 : 1, &in,
                   named);
}

static void deadline_and_cancel_end_a_run(void **state) {
  (void)state;
  bench t;
  open_bench(&t, 2);
  weir_value_id a = hold(&t, "a", WEIR_NO_VALUE, 500000000000);
  weir_value_id b = hold(&t, "b", a, 500000000000);
  open_session(&t);
  int64_t start = exec_now_ns(NULL);
  weir_run_options options = {.deadline_ns = start + 5000000};
  weir_error why = WEIR_ERROR_INIT;
  weir_exec_fetch fetch = {.value = b, .error = &why};
  weir_exec_request request = {
      .fetches = &fetch, .fetch_count = 1, .options = &options};
  assert_error(weir_exec_run(t.session, &request, &t.err), &t.err, "W5006");
  assert_int_equal(fetch.status, WEIR_DEADLINE_EXCEEDED);
  assert_string_equal(why.id, "W5006");
  atomic_bool cancel = true;
  options = (weir_run_options){.cancel = &cancel};
  assert_error(weir_exec_run(t.session, &request, &t.err), &t.err, "W5005");
  assert_null(fetch.tensor);
  assert_true(exec_now_ns(NULL) - start < 100000000000);
  close_bench(&t);
}

/* Whether the two events of |trace| share a moment. */
static bool events_meet(const weir_trace *trace) {
  assert_int_equal(weir_trace_count(trace), 2);
  weir_trace_event a = weir_trace_event_at(trace, 0);
  weir_trace_event b = weir_trace_event_at(trace, 1);
  return a.start_ns < b.end_ns && b.start_ns < a.end_ns;
}

/* Two holds that do not depend on each other. A busy machine may keep a thread
 * from its core for long: one try of several will do. */
static void independent_work_runs_at_once(void **state) {
  (void)state;
  bench t;
  open_bench(&t, 2);
  weir_value_id a = hold(&t, "a", WEIR_NO_VALUE, 20000000);
  weir_value_id b = hold(&t, "b", WEIR_NO_VALUE, 20000000);
  open_session(&t);
  bool met = false;
  for (int i = 0; i < 10 && !met; i++) {
    weir_exec_fetch fetch[] = {{.value = a}, {.value = b}};
    weir_trace *trace = NULL;
    assert_ok(weir_exec_trace_create(&t.world.env, 10, &trace, &t.err), &t.err);
    weir_run_options options = {.trace = trace};
    weir_exec_request request = {
        .fetches = fetch, .fetch_count = 2, .options = &options};
    assert_ok(weir_exec_run(t.session, &request, &t.err), &t.err);
    met = events_meet(trace);
    weir_exec_trace_release(trace);
    weir_tensor_unref(fetch[0].tensor);
    weir_tensor_unref(fetch[1].tensor);
  }
  assert_true(met);
  close_bench(&t);
}

typedef struct seen {
  int values, failures;
  char names[8][16];
} seen;

static void see_value(void *self, weir_sv node, uint32_t port,
                      const weir_tensor *tensor) {
  seen *s = self;
  assert_int_equal(port, 0);
  assert_non_null(tensor);
  snprintf(s->names[s->values++], 16, "%.*s", WEIR_SV(node));
}

static void see_failure(void *self, const weir_error *error) {
  seen *s = self;
  assert_string_equal(error->node, "log");
  s->failures++;
}

static void dump_trap_and_trace(void **state) {
  (void)state;
  bench t;
  open_bench(&t, 2);
  weir_value_id x = input(&t.m, "x", WEIR_F32, 0, NULL, WEIR_NO_VALUE);
  weir_value_id n = NODE(&t.m, "neg", "neg", x);
  weir_value_id l = NODE(&t.m, "log", "log", n);
  weir_value_id y = NODE(&t.m, "exp", "exp", l);
  open_session(&t);
  weir_tensor *in = f32_scalar(&t.world.memory.base, 2);
  weir_exec_feed feed = {x, in};
  weir_exec_fetch fetch = {.value = y};
  seen s = {0};
  weir_run_observer observer = {&s, see_value, see_failure};
  weir_node_id dump = t.graph->values[n].node;
  weir_trace *trace = NULL;
  assert_ok(weir_exec_trace_create(&t.world.env, 100, &trace, &t.err), &t.err);
  weir_run_options options = {
      .dump = &dump, .dump_count = 1, .observer = &observer, .trace = trace};
  weir_exec_request request = {.feeds = &feed,
                               .feed_count = 1,
                               .fetches = &fetch,
                               .fetch_count = 1,
                               .options = &options};
  assert_ok(weir_exec_run(t.session, &request, &t.err), &t.err);
  assert_int_equal(s.values, 2);
  assert_string_equal(s.names[0], "exp");
  assert_string_equal(s.names[1], "neg");
  assert_true(weir_trace_count(trace) > 0);
  assert_true(isnan(((float *)fetch.tensor->data)[0]));
  weir_tensor_unref(fetch.tensor);
  fetch.tensor = NULL;
  options = (weir_run_options){.trap_nan = true, .observer = &observer};
  assert_error(weir_exec_run(t.session, &request, &t.err), &t.err, "W5004");
  assert_string_equal(t.err.node, "log");
  assert_int_equal(s.failures, 1);
  weir_exec_trace_release(trace);
  weir_tensor_unref(in);
  close_bench(&t);
}

/* ---- Many threads */

typedef struct crowd {
  bench *t;
  weir_value_id add_one, read;
  atomic_int wrong;
} crowd;

static void *count_up(void *self) {
  crowd *c = self;
  for (int i = 0; i < 50; i++) {
    weir_exec_fetch fetch = {.value = c->add_one};
    weir_error err = WEIR_ERROR_INIT;
    weir_exec_request request = {.fetches = &fetch, .fetch_count = 1};
    if (weir_exec_run(c->t->session, &request, &err) != WEIR_OK)
      atomic_fetch_add(&c->wrong, 1);
    weir_tensor_unref(fetch.tensor);
  }
  return NULL;
}

static void *watch(void *self) {
  crowd *c = self;
  float last = 0;
  for (int i = 0; i < 50; i++) {
    weir_exec_fetch fetch = {.value = c->read};
    weir_error err = WEIR_ERROR_INIT;
    weir_exec_request request = {.fetches = &fetch, .fetch_count = 1};
    if (weir_exec_run(c->t->session, &request, &err) != WEIR_OK) {
      atomic_fetch_add(&c->wrong, 1);
      continue;
    }
    /* Both elements of one commit, and never an older one. */
    const float *v = fetch.tensor->data;
    if (v[0] != v[1] || v[0] < last) atomic_fetch_add(&c->wrong, 1);
    last = v[0];
    weir_tensor_unref(fetch.tensor);
  }
  return NULL;
}

static void writers_take_turns_and_readers_see_commits(void **state) {
  (void)state;
  static const weir_dim k2[] = {{2, 0, 0}};
  bench t;
  open_bench(&t, 2);
  weir_value_id zero = constant(&t.m, "zero", 1, k2, (float[]){0, 0});
  weir_value_id one = constant(&t.m, "one", 1, k2, (float[]){1, 1});
  weir_value_id v = typed(&t.m, "v", "var", WEIR_F32, 1, k2, zero);
  crowd c = {.t = &t};
  c.add_one = NODE(&t.m, "up", "assign_add", v, one);
  c.read = NODE(&t.m, "read", "add", v, zero);
  open_session(&t);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++)
    assert_int_equal(
        pthread_create(&threads[i], NULL, i < 2 ? count_up : watch, &c), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  assert_int_equal(atomic_load(&c.wrong), 0);
  weir_tensor *now = NULL;
  assert_ok(
      weir_exec_variable_get(t.session, t.graph->values[v].node, &now, &t.err),
      &t.err);
  assert_true(((float *)now->data)[1] == 100);
  weir_tensor_set_f64(now, 0, 7);
  assert_ok(
      weir_exec_variable_set(t.session, t.graph->values[v].node, now, &t.err),
      &t.err);
  weir_exec_fetch fetch = {.value = c.read};
  weir_exec_request request = {.fetches = &fetch, .fetch_count = 1};
  assert_ok(weir_exec_run(t.session, &request, &t.err), &t.err);
  assert_true(((float *)fetch.tensor->data)[0] == 7);
  weir_tensor_unref(fetch.tensor);
  weir_tensor_unref(now);
  close_bench(&t);
}

/* A variable that nothing assigns is a constant until it is set. */
static void a_set_reaches_runs_and_bindings(void **state) {
  (void)state;
  bench t;
  open_bench(&t, 2);
  weir_value_id three = constant(&t.m, "three", 0, NULL, (float[]){3});
  weir_value_id x = input(&t.m, "x", WEIR_F32, 0, NULL, WEIR_NO_VALUE);
  weir_value_id v = typed(&t.m, "v", "var", WEIR_F32, 0, NULL, three);
  weir_value_id w = NODE(&t.m, "w", "mul", v, v);
  weir_value_id y = NODE(&t.m, "y", "add", x, w);
  open_session(&t);
  weir_tensor *in = f32_scalar(&t.world.memory.base, 1);
  weir_exec_feed feed = {x, in};
  weir_exec_fetch bound = {.value = y};
  weir_binding *binding = NULL;
  weir_exec_request lasting = {
      .feeds = &feed, .feed_count = 1, .fetches = &bound, .fetch_count = 1};
  assert_ok(weir_exec_bind(t.session, &lasting, &binding, &t.err), &t.err);
  assert_int_equal(weir_binding_stats(binding).instructions, 1); /* w folds */
  for (float value = 3; value < 6; value++) {
    weir_tensor *set = f32_scalar(&t.world.memory.base, value);
    if (value > 3)
      assert_ok(weir_exec_variable_set(t.session, t.graph->values[v].node, set,
                                       &t.err),
                &t.err);
    weir_exec_fetch fetch = {.value = y};
    weir_exec_request request = {
        .feeds = &feed, .feed_count = 1, .fetches = &fetch, .fetch_count = 1};
    assert_ok(weir_exec_run(t.session, &request, &t.err), &t.err);
    assert_true(((float *)fetch.tensor->data)[0] == 1 + value * value);
    for (int i = 0; i < 2; i++) {
      assert_ok(weir_binding_run(binding, NULL, &t.err), &t.err);
      assert_true(((float *)bound.tensor->data)[0] == 1 + value * value);
    }
    weir_tensor_unref(fetch.tensor);
    weir_tensor_unref(set);
  }
  weir_tensor_unref(bound.tensor);
  weir_binding_release(binding);
  weir_tensor_unref(in);
  close_bench(&t);
}

/* ---- Overlapped steps */

enum { kSteps = 12 };
typedef struct laps {
  int64_t begin_ns[kSteps], end_ns[kSteps];
  float out[kSteps];
} laps;

static void lap_begin(void *self, uint64_t step) {
  ((laps *)self)->begin_ns[step] = exec_now_ns(NULL);
}

static void lap_end(void *self, uint64_t step, weir_tensor *const *outputs) {
  laps *l = self;
  l->out[step] = *(const float *)outputs[0]->data;
  l->end_ns[step] = exec_now_ns(NULL);
}

static void steps_overlap_and_agree(void **state) {
  (void)state;
  bench t;
  open_bench(&t, 2);
  weir_value_id x = input(&t.m, "x", WEIR_F32, 0, NULL, WEIR_NO_VALUE);
  weir_value_id a = hold(&t, "a", x, 10000000);
  weir_value_id y = NODE(&t.m, "y", "add", x, x);
  open_session(&t);
  weir_tensor *in = f32_scalar(&t.world.memory.base, 21);
  weir_exec_feed feed = {x, in};
  weir_exec_fetch fetch[] = {{.value = y}, {.value = a}};
  weir_binding *binding = NULL;
  weir_exec_request request = {
      .feeds = &feed, .feed_count = 1, .fetches = fetch, .fetch_count = 2};
  assert_ok(weir_exec_bind(t.session, &request, &binding, &t.err), &t.err);
  laps l = {0};
  weir_overlap_options overlap = {.steps = kSteps,
                                  .inflight = 2,
                                  .self = &l,
                                  .begin = lap_begin,
                                  .end = lap_end};
  assert_ok(weir_binding_run_overlapped(binding, &overlap, NULL, &t.err),
            &t.err);
  int overlapped = 0;
  for (int i = 0; i + 1 < kSteps; i++) {
    if (l.begin_ns[i + 1] < l.end_ns[i]) overlapped++;
    assert_true(l.out[i] == 42);
  }
  assert_true(overlapped >= kSteps / 3);
  overlap.inflight = 0;
  assert_error(weir_binding_run_overlapped(binding, &overlap, NULL, &t.err),
               &t.err, "W0004");
  for (int i = 0; i < 2; i++) weir_tensor_unref(fetch[i].tensor);
  weir_binding_release(binding);
  weir_tensor_unref(in);
  close_bench(&t);
}

/* ---- Every k-th allocation fails */

static weir_status scenario(bench *t, weir_value_id x, weir_value_id y,
                            weir_value_id up, weir_tensor *in) {
  weir_exec_session *session = NULL;
  weir_binding *binding = NULL;
  weir_exec_feed feed = {x, in};
  weir_exec_fetch fetch[] = {{.value = y}, {.value = up}};
  weir_exec_fetch bound[] = {{.value = y}};
  weir_status s = weir_exec_session_create(&t->world.env, t->pool, t->graph,
                                           NULL, &session, &t->err);
  weir_exec_request request = {
      .feeds = &feed, .feed_count = 1, .fetches = fetch, .fetch_count = 2};
  if (s == WEIR_OK) s = weir_exec_run(session, &request, &t->err);
  for (int i = 0; i < 2; i++) weir_tensor_unref(fetch[i].tensor);
  request.fetches = bound;
  request.fetch_count = 1;
  if (s == WEIR_OK) s = weir_exec_bind(session, &request, &binding, &t->err);
  if (s == WEIR_OK) s = weir_binding_run(binding, NULL, &t->err);
  weir_tensor_unref(bound[0].tensor);
  weir_binding_release(binding);
  weir_exec_session_release(session);
  return s;
}

static void survives_any_allocation_failing(void **state) {
  (void)state;
  static const weir_dim k22[] = {{2, 0, 0}, {2, 0, 0}};
  bench t;
  open_bench(&t, 1);
  weir_dim dims[] = {
      {0, weir_graph_builder_symbol(t.m.b, weir_sv_from("n")), 0}, {2, 0, 0}};
  weir_value_id x = input(&t.m, "x", WEIR_F32, 2, dims, WEIR_NO_VALUE);
  weir_value_id c = constant(&t.m, "c", 2, k22, (float[]){1, 2, 3, 4});
  weir_value_id d = NODE(&t.m, "d", "add", c, c);
  weir_value_id v = typed(&t.m, "v", "var", WEIR_F32, 2, k22, d);
  weir_value_id u = typed(&t.m, "u", "var", WEIR_F32, 2, k22, c);
  weir_value_id w = NODE(&t.m, "w", "mul", v, NODE(&t.m, "uu", "neg", u));
  weir_value_id h = NODE(&t.m, "h", "matmul", x, w);
  weir_value_id r = NODE(&t.m, "r", "relu", h);
  weir_value_id y = NODE(&t.m, "y", "add", r, x);
  weir_value_id up = NODE(&t.m, "up", "assign_add", v, c);
  t.graph = finish(&t.m);
  weir_tensor *in =
      f32_tensor(&t.world.memory.base, 2, (int64_t[]){3, 2}, NULL);
  memset(in->data, 0, in->bytes);
  int64_t live = atomic_load(&t.world.memory.live_blocks);
  for (int forever = 0; forever < 2; forever++) {
    uint64_t k = 0;
    weir_status s = WEIR_RESOURCE_EXHAUSTED;
    while (s != WEIR_OK) {
      atomic_store(&t.world.memory.calls, 0);
      t.world.memory.fail_at = ++k;
      t.world.memory.fail_forever = forever != 0;
      s = scenario(&t, x, y, up, in);
      if (s != WEIR_OK) assert_string_equal(t.err.id, "W6001");
      assert_int_equal(atomic_load(&t.world.memory.live_blocks), live);
    }
    assert_true(k > 50);
  }
  weir_tensor_unref(in);
  close_bench(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(deadline_and_cancel_end_a_run),
      cmocka_unit_test(independent_work_runs_at_once),
      cmocka_unit_test(dump_trap_and_trace),
      cmocka_unit_test(writers_take_turns_and_readers_see_commits),
      cmocka_unit_test(a_set_reaches_runs_and_bindings),
      cmocka_unit_test(steps_overlap_and_agree),
      cmocka_unit_test(survives_any_allocation_failing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
