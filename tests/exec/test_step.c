/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/session/step.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "kernels/kernel.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/load/load.h"
#include "tests/exec/support.h"

/* Steps that nobody waits for, and whose assignments wait for a decision. */

static const char kCounter[] =
    "weir: 1\n"
    "inputs: {x: \"f32[4]\", i: \"i64[]\"}\n"
    "nodes:\n"
    "  v: var([4], init=zeros())\n"
    "  a: assign_add(v, x)\n"
    "  r: add(v, x)\n"
    "  d: div(7, i)\n"
    "outputs: [a, r, d]\n";

enum { A, R, D };

typedef struct scene {
  exec_world world;
  weir_graph *graph;
  weir_pool *pool;
  weir_exec_session *session;
  weir_tensor *x, *i;
  weir_node_id var;
  weir_error err;
} scene;

static void make_feeds(scene *s) {
  weir_shape four = weir_shape_of(1, (const int64_t[]){4});
  weir_shape scalar = weir_shape_of(0, NULL);
  const weir_allocator *a = weir_allocator_system();
  assert_ok(weir_tensor_create_shaped(a, WEIR_F32, &four, &s->x, &s->err),
            &s->err);
  assert_ok(weir_tensor_create_shaped(a, WEIR_I64, &scalar, &s->i, &s->err),
            &s->err);
  for (int k = 0; k < 4; k++) ((float *)s->x->data)[k] = 1;
  *(int64_t *)s->i->data = 0;
}

static void open_scene(scene *s, int threads) {
  *s = (scene){.err = WEIR_ERROR_INIT};
  weir_load_options load = {.registry = weir_builtin_registry()};
  exec_world_init(&s->world);
  s->pool = exec_pool(&s->world, threads);
  assert_ok(weir_graph_load_text(&s->world.env, weir_sv_from(kCounter),
                                 "counter.yaml", &load, &s->graph, &s->err),
            &s->err);
  assert_ok(weir_exec_session_create(&s->world.env, s->pool, s->graph, NULL,
                                     &s->session, &s->err),
            &s->err);
  s->var = weir_graph_find_node(s->graph, WEIR_SV_LIT("v"));
  make_feeds(s);
}

static void close_scene(scene *s) {
  s->world.memory.fail_at = 0;
  weir_exec_session_release(s->session);
  weir_pool_release(s->pool);
  weir_graph_unref(s->graph);
  weir_tensor_unref(s->x);
  weir_tensor_unref(s->i);
  exec_world_check_empty(&s->world);
}

static float now(scene *s) {
  weir_tensor *t = NULL;
  assert_ok(weir_exec_variable_get(s->session, s->var, &t, &s->err), &s->err);
  float x = ((const float *)t->data)[3];
  weir_tensor_unref(t);
  return x;
}

/* How a step ended. */
typedef struct seen {
  atomic_int ended;
  weir_exec_step *step;
  weir_status status, fetch_status[3];
  uint32_t order, fetch_order[3];
  bool prepared, commits;
  float value; /* of the first fetch */
  pthread_t thread;
  char id[8];
} seen;

static void on_end(void *self, weir_exec_step *step,
                   const weir_exec_step_result *result) {
  seen *e = self;
  e->status = result->status;
  e->order = result->order;
  e->prepared = result->prepared;
  assert_true((result->status == WEIR_OK) == (result->err == NULL));
  if (result->err != NULL) memcpy(e->id, result->err->id, sizeof e->id);
  for (uint32_t k = 0; k < result->fetch_count; k++) {
    weir_exec_step_fetch *f = &result->fetches[k];
    e->fetch_status[k] = f->status;
    e->fetch_order[k] = f->order;
    assert_true((f->tensor != NULL) == (f->status == WEIR_OK));
    if (f->status != WEIR_OK) assert_int_not_equal(f->error.id[0], 0);
    if (k == 0 && f->tensor != NULL) e->value = *(const float *)f->tensor->data;
  }
  e->thread = pthread_self();
  if (e->commits) weir_exec_step_commit(step);
  atomic_store(&e->ended, 1);
}

static weir_status try_start(scene *s, seen *e, const int *outputs,
                             size_t count) {
  weir_exec_fetch fetches[3] = {{0}};
  weir_exec_feed feeds[] = {{s->graph->inputs[0].value, s->x},
                            {s->graph->inputs[1].value, s->i}};
  weir_exec_step_end end = {on_end, e};
  bool divides = false;
  for (size_t k = 0; k < count; k++) {
    fetches[k].value = s->graph->outputs[outputs[k]].value;
    divides = divides || outputs[k] == D;
  }
  weir_exec_request request = {.feeds = feeds,
                               .feed_count = divides ? 2 : 1,
                               .fetches = fetches,
                               .fetch_count = count};
  return weir_session_step_start(s->session, &request, &end, &e->step, &s->err);
}

static void start(scene *s, seen *e, const int *outputs, size_t count) {
  *e = (seen){.commits = e->commits};
  assert_ok(try_start(s, e, outputs, count), &s->err);
}

static void wait_for(seen *e) {
  while (atomic_load(&e->ended) == 0) sched_yield();
}

#define ONLY(output) ((const int[]){output}), 1

static void values_wait_for_the_decision(void **state) {
  (void)state;
  for (int threads = 1; threads <= 2; threads++) {
    scene s;
    seen first = {0}, second = {0}, third = {0}, reader = {0};
    open_scene(&s, threads);
    start(&s, &first, ONLY(A));
    wait_for(&first);
    assert_int_equal(first.status, WEIR_OK);
    assert_true(first.prepared && first.value == 1);
    assert_true(now(&s) == 0);
    start(&s, &second, ONLY(A)); /* in the queue, in this order */
    start(&s, &third, ONLY(A));
    start(&s, &reader, ONLY(R));
    wait_for(&reader);
    assert_true(reader.value == 1 && !reader.prepared);
    assert_int_equal(second.ended, 0);
    weir_exec_step_commit(reader.step);
    weir_exec_step_commit(first.step);
    assert_true(now(&s) == 1);
    wait_for(&second);
    assert_true(second.value == 2);
    assert_int_equal(third.ended, 0);
    weir_exec_step_abort(second.step, NULL);
    assert_true(now(&s) == 1);
    wait_for(&third);
    assert_true(third.value == 2); /* as if the second had not been */
    weir_exec_step_commit(third.step);
    assert_true(now(&s) == 2);
    close_scene(&s);
  }
}

/* The first is compiled by a thread of the pool. The program is there for the
 * second, and is too small to be handed over. */
static void a_small_step_ends_within_its_start(void **state) {
  (void)state;
  scene s;
  open_scene(&s, 2);
  for (int k = 0; k < 2; k++) {
    seen reader = {0}, writer = {0};
    start(&s, &reader, ONLY(R));
    if (k == 0) wait_for(&reader);
    assert_int_equal(reader.ended, 1);
    assert_true((k == 1) == pthread_equal(reader.thread, pthread_self()));
    assert_int_equal(reader.status, WEIR_OK);
    weir_exec_step_commit(reader.step);
    start(&s, &writer, ONLY(A));
    if (k == 0) wait_for(&writer);
    assert_int_equal(writer.ended, 1);
    assert_true(writer.prepared);
    weir_exec_step_commit(writer.step);
    assert_true(now(&s) == (float)(k + 1));
  }
  close_scene(&s);
}

static void a_queued_step_is_given_up(void **state) {
  (void)state;
  scene s;
  seen first = {0}, second = {0}, third = {0};
  weir_error why = WEIR_ERROR_INIT;
  weir_fail(&why, WEIR_W5006, NULL, "too late");
  open_scene(&s, 2);
  start(&s, &first, ONLY(A));
  wait_for(&first);
  start(&s, &second, ONLY(A));
  start(&s, &third, ONLY(A));
  weir_exec_step_abort(second.step, &why);
  wait_for(&second);
  assert_string_equal(second.id, "W5006");
  assert_int_equal(second.fetch_status[0], WEIR_DEADLINE_EXCEEDED);
  assert_int_equal(second.order, UINT32_MAX);
  weir_exec_step_abort(first.step, NULL);
  wait_for(&third);
  weir_exec_step_commit(third.step);
  assert_true(now(&s) == 1);
  close_scene(&s);
}

/* In any state: it ends once, and leaves nothing. */
static void a_step_is_given_up_at_any_moment(void **state) {
  (void)state;
  scene s;
  open_scene(&s, 2);
  for (int k = 0; k < 200; k++) {
    seen e = {0};
    start(&s, &e, ONLY(k % 2 == 0 ? A : R));
    for (int spin = 0; spin < k; spin++) sched_yield();
    weir_exec_step_abort(e.step, NULL);
    wait_for(&e);
    assert_true(e.status == WEIR_OK || strcmp(e.id, "W5005") == 0);
  }
  assert_true(now(&s) == 0);
  close_scene(&s);
}

static void failures_have_their_order(void **state) {
  (void)state;
  scene s;
  seen e = {0};
  open_scene(&s, 2);
  start(&s, &e, (const int[]){A, D}, 2);
  wait_for(&e);
  assert_int_not_equal(e.status, WEIR_OK);
  assert_string_equal(e.id, "W5003");
  assert_false(e.prepared);
  assert_int_equal(e.fetch_status[0], WEIR_OK);
  assert_int_equal(e.fetch_order[0], UINT32_MAX);
  assert_int_not_equal(e.fetch_status[1], WEIR_OK);
  assert_true(e.order < s.graph->node_count);
  assert_int_equal(e.fetch_order[1], e.order);
  weir_exec_step_commit(e.step); /* of nothing */
  assert_true(now(&s) == 0);
  *(int64_t *)s.i->data = 7;
  start(&s, &e, (const int[]){A, D}, 2);
  wait_for(&e);
  assert_true(e.prepared);
  weir_exec_step_commit(e.step);
  assert_true(now(&s) == 1);
  close_scene(&s);
}

static void *run_once(void *self) {
  scene *s = self;
  weir_error err = WEIR_ERROR_INIT;
  weir_exec_feed feed = {s->graph->inputs[0].value, s->x};
  weir_exec_fetch fetch = {.value = s->graph->outputs[A].value};
  weir_exec_request request = {
      .feeds = &feed, .feed_count = 1, .fetches = &fetch, .fetch_count = 1};
  assert_ok(weir_exec_run(s->session, &request, &err), &err);
  weir_tensor_unref(fetch.tensor);
  return NULL;
}

/* A run and a prepared step take turns too, and steps decide where they end. */
static void all_kinds_take_turns(void **state) {
  (void)state;
  for (int threads = 1; threads <= 2; threads++) {
    scene s;
    enum { kSteps = 60, kRuns = 4 };
    seen first = {0}, steps[kSteps];
    pthread_t callers[kRuns];
    open_scene(&s, threads);
    start(&s, &first, ONLY(A));
    wait_for(&first);
    for (int k = 0; k < kRuns; k++)
      pthread_create(&callers[k], NULL, run_once, &s);
    for (int k = 0; k < kSteps; k++) {
      steps[k].commits = true;
      start(&s, &steps[k], ONLY(k % 3 == 0 ? R : A));
    }
    weir_exec_step_commit(first.step);
    for (int k = 0; k < kRuns; k++) pthread_join(callers[k], NULL);
    for (int k = 0; k < kSteps; k++) {
      wait_for(&steps[k]);
      assert_int_equal(steps[k].status, WEIR_OK);
    }
    assert_true(now(&s) == 1 + kRuns + kSteps * 2 / 3);
    close_scene(&s);
  }
}

/* |known|: the program was compiled before. */
static bool step_with_failing(uint64_t k, bool forever, bool known) {
  scene s;
  seen e = {0}, before = {0};
  open_scene(&s, 1);
  if (known) {
    start(&s, &before, ONLY(A));
    wait_for(&before);
    weir_exec_step_abort(before.step, NULL);
  }
  uint64_t first = atomic_load(&s.world.memory.calls);
  s.world.memory.fail_forever = forever;
  s.world.memory.fail_at = first + k;
  weir_status started = try_start(&s, &e, ONLY(A));
  if (started == WEIR_OK) {
    wait_for(&e);
    if (e.status != WEIR_OK) assert_string_equal(e.id, "W6001");
    weir_exec_step_commit(e.step);
  } else {
    assert_string_equal(s.err.id, "W6001");
    assert_null(e.step);
  }
  bool passed = started == WEIR_OK && e.status == WEIR_OK;
  bool reached = atomic_load(&s.world.memory.calls) >= first + k;
  close_scene(&s);
  return passed && !reached;
}

static void survives_no_memory(void **state) {
  (void)state;
  for (int way = 0; way < 4; way++)
    for (uint64_t k = 1; !step_with_failing(k, way % 2 == 1, way >= 2); k++)
      assert_true(k < 5000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_wait_for_the_decision),
      cmocka_unit_test(a_small_step_ends_within_its_start),
      cmocka_unit_test(a_queued_step_is_given_up),
      cmocka_unit_test(a_step_is_given_up_at_any_moment),
      cmocka_unit_test(failures_have_their_order),
      cmocka_unit_test(all_kinds_take_turns),
      cmocka_unit_test(survives_no_memory),
  };
  alarm(300); /* a step that never ends */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
