/* SPDX-License-Identifier: Apache-2.0
 *
 * Small steps of a device: within their start when it is free, behind the
 * others when it is not. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/kernel.h"
#include "placement/place.h"
#include "runtime/exec/session/session.h"
#include "runtime/exec/session/step.h"
#include "runtime/graph/load/load.h"
#include "tests/exec/support.h"

static const char kText[] =
    "weir: 1\n"
    "inputs: {x: \"f32[4]\"}\n"
    "nodes:\n"
    "  y: add(x, 1.5)\n"
    "outputs: [y]\n";

/* How often it turns depends on data. */
static const char kLoop[] =
    "weir: 1\n"
    "inputs: {x: \"f32[4]\"}\n"
    "nodes:\n"
    "  l:\n"
    "    while:\n"
    "      carry: {v: x}\n"
    "      cond: less(reduce_max(v), 100000)\n"
    "      nodes: {more: 'add(v, 0.5)'}\n"
    "      next: {v: more}\n"
    "  y: sub(l.v, 99995.5)\n"
    "outputs: [y]\n";

enum { kThreads = 3, kSteps = 400 };

typedef struct scene {
  exec_world world;
  weir_graph *graph;
  weir_placing *placing;
  weir_plan *plan;
  weir_pool *pool;
  weir_exec_session *session;
  weir_tensor *x;
  weir_error err;
} scene;

static void open_scene(scene *s, const char *text) {
  weir_load_options load = {.registry = weir_builtin_registry()};
  weir_shape four = weir_shape_of(1, (const int64_t[]){4});
  *s = (scene){.err = WEIR_ERROR_INIT};
  exec_world_init(&s->world);
  s->pool = exec_pool(&s->world, 2);
  assert_ok(weir_graph_load_text(&s->world.env, weir_sv_from(text), "small",
                                 &load, &s->graph, &s->err),
            &s->err);
  weir_place_request request = {.graph = s->graph, .cluster = "worker=1"};
  assert_ok(weir_placing_create(s->world.env.alloc, &request, &s->placing,
                                &s->plan, &s->err),
            &s->err);
  weir_session_options options = {.placing = s->placing, .plan = s->plan};
  assert_ok(weir_exec_session_create(&s->world.env, s->pool, s->graph, &options,
                                     &s->session, &s->err),
            &s->err);
  assert_ok(weir_tensor_create_shaped(weir_allocator_system(), WEIR_F32, &four,
                                      &s->x, &s->err),
            &s->err);
  for (int k = 0; k < 4; k++) ((float *)s->x->data)[k] = (float)k;
}

static void close_scene(scene *s) {
  weir_exec_session_release(s->session);
  weir_pool_release(s->pool);
  weir_plan_unref(s->plan);
  weir_placing_unref(s->placing);
  weir_graph_unref(s->graph);
  weir_tensor_unref(s->x);
  exec_world_check_empty(&s->world);
}

typedef struct seen {
  atomic_int ended;
  bool right;
  pthread_t thread;
} seen;

static void on_end(void *self, weir_exec_step *step,
                   const weir_exec_step_result *result) {
  seen *e = self;
  const weir_tensor *y = result->fetches[0].tensor;
  e->right = result->status == WEIR_OK && ((const float *)y->data)[3] == 4.5f;
  e->thread = pthread_self();
  weir_exec_step_commit(step);
  atomic_store(&e->ended, 1);
}

static void start(scene *s, seen *e) {
  weir_error err = WEIR_ERROR_INIT;
  weir_exec_step *step;
  weir_exec_feed feed = {s->graph->inputs[0].value, s->x};
  weir_exec_fetch fetch = {.value = s->graph->outputs[0].value};
  weir_exec_request request = {
      .feeds = &feed, .feed_count = 1, .fetches = &fetch, .fetch_count = 1};
  weir_exec_step_end end = {on_end, e};
  atomic_init(&e->ended, 0);
  if (weir_session_step_start(s->session, &request, &end, &step, &err) !=
      WEIR_OK)
    abort();
}

static void wait_for(seen *e) {
  while (atomic_load(&e->ended) == 0) sched_yield();
  if (!e->right) abort();
}

static void a_free_device_runs_at_once(void **state) {
  (void)state;
  scene s;
  open_scene(&s, kText);
  for (int k = 0; k < 3; k++) {
    seen e;
    start(&s, &e);
    if (k == 0) wait_for(&e);
    assert_int_equal(atomic_load(&e.ended), 1);
    assert_true(e.right);
    assert_true((k > 0) == pthread_equal(e.thread, pthread_self()));
  }
  close_scene(&s);
}

static int64_t now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* It might keep the caller for ever. Where it ran is seen by the processor
 * time: the caller's is a small part of all. */
static void a_loop_runs_elsewhere(void **state) {
  (void)state;
  scene s;
  open_scene(&s, kLoop);
  for (int k = 0; k < 3; k++) {
    seen e;
    int64_t all = now(CLOCK_PROCESS_CPUTIME_ID);
    int64_t own = now(CLOCK_THREAD_CPUTIME_ID);
    start(&s, &e);
    own = now(CLOCK_THREAD_CPUTIME_ID) - own;
    wait_for(&e);
    assert_true(own < (now(CLOCK_PROCESS_CPUTIME_ID) - all) / 4);
  }
  close_scene(&s);
}

static void *start_many(void *self) {
  seen *e = calloc(kSteps, sizeof *e);
  for (int k = 0; k < kSteps; k++) start(self, &e[k]);
  for (int k = 0; k < kSteps; k++) wait_for(&e[k]);
  free(e);
  return NULL;
}

static void a_busy_device_is_waited_for(void **state) {
  (void)state;
  scene s;
  pthread_t threads[kThreads];
  open_scene(&s, kText);
  for (int i = 0; i < kThreads; i++)
    pthread_create(&threads[i], NULL, start_many, &s);
  for (int i = 0; i < kThreads; i++) pthread_join(threads[i], NULL);
  close_scene(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_free_device_runs_at_once),
      cmocka_unit_test(a_loop_runs_elsewhere),
      cmocka_unit_test(a_busy_device_is_waited_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
