/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "runtime/weir.h"
#include "tests/check.h"

static const char text[] =
    "weir: 1\n"
    "dims: {n: null}\n"
    "inputs:\n"
    "  x: f32[n]\n"
    "  i: i64[2] = zeros([2], dtype=i64)\n"
    "nodes:\n"
    "  v: state([2])\n"
    "  y: add(x, 1)\n"
    "  g: gather(x, i)\n"
    "  bump: assign_add(v, g)\n"
    "  a, b: split(y, 2)\n"
    "  slow: task(y, cost_ns=20000000000)\n"
    "outputs: [y, g, slow]\n";

static weir_runtime *runtime;
static weir_graph *graph;
static weir_session *session;

static int setup(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_runtime_opts opts = {.struct_size = sizeof opts, .threads = 2};
  weir_status s = weir_runtime_create(&opts, &runtime, &err);
  if (s == WEIR_OK)
    s = weir_graph_load_buffer(runtime, text, strlen(text), "g", NULL, &graph,
                               &err);
  if (s == WEIR_OK)
    s = weir_session_create(runtime, graph, NULL, &session, &err);
  if (s != WEIR_OK) print_error("%s %s\n", err.id, err.message);
  return s != WEIR_OK;
}

static int teardown(void **state) {
  (void)state;
  weir_session_release(session);
  weir_graph_release(graph);
  weir_runtime_release(runtime);
  return 0;
}

static weir_tensor *vector(int64_t n, float first) {
  weir_tensor *t = NULL;
  assert_int_equal(weir_tensor_create(runtime, WEIR_F32, 1, &n, &t, NULL), 0);
  for (int64_t i = 0; i < n; i++)
    ((float *)weir_tensor_mutable_data(t))[i] = first + (float)i;
  return t;
}

static float at(const weir_tensor *t, int i) {
  return ((const float *)weir_tensor_data(t))[i];
}

static void test_run(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *x = vector(4, 1);
  weir_feed feed = WEIR_FEED("x", x);
  weir_fetch fetches[] = {WEIR_FETCH("y"), WEIR_FETCH("a:1"), WEIR_FETCH("a")};
  assert_ok(
      weir_session_run(
          session, &(weir_run_request)WEIR_RUN_REQUEST(&feed, 1, fetches, 3),
          NULL, &err),
      &err);
  assert_true(at(fetches[0].tensor, 3) == 5);
  assert_true(at(fetches[1].tensor, 0) == 4);
  assert_true(at(fetches[2].tensor, 0) == 2);
  for (int i = 0; i < 3; i++) weir_tensor_release(fetches[i].tensor);
  /* Another shape; into a tensor of the caller's. */
  weir_tensor *x2 = vector(2, 5), *y = vector(2, 0);
  feed.tensor = x2;
  fetches[0] = (weir_fetch)WEIR_FETCH("y");
  fetches[0].tensor = y;
  assert_ok(
      weir_session_run(
          session, &(weir_run_request)WEIR_RUN_REQUEST(&feed, 1, fetches, 1),
          NULL, &err),
      &err);
  assert_ptr_equal(fetches[0].tensor, y);
  assert_true(at(y, 1) == 7);
  weir_tensor_release(y);
  weir_tensor_release(x);
  weir_tensor_release(x2);
}

/* Options of GPUs alone: a CPU's run has its bits, and no file is opened. */
static void test_options_of_gpus(void **state) {
  (void)state;
  static const char kGraph[] =
      "weir: 1\ninputs: {x: 'f32[4, 4] = uniform(-1, 1, seed=1)'}\n"
      "nodes: {y: 'matmul(x, x)'}\noutputs: [y]\n";
  weir_error err = WEIR_ERROR_INIT;
  float got[2][16];
  for (int i = 0; i < 2; i++) {
    weir_runtime_opts opts = {.struct_size = sizeof opts,
                              .tune = i == 1 ? "/nowhere/file" : NULL};
    weir_session_opts options = {.struct_size = sizeof options, .tf32 = i == 1};
    weir_runtime *own = NULL;
    weir_graph *product = NULL;
    weir_session *s = NULL;
    weir_fetch y = WEIR_FETCH("y");
    assert_ok(weir_runtime_create(&opts, &own, &err), &err);
    assert_ok(weir_graph_load_buffer(own, kGraph, strlen(kGraph), "g", NULL,
                                     &product, &err),
              &err);
    assert_ok(weir_session_create(own, product, &options, &s, &err), &err);
    assert_ok(
        weir_session_run(s, &(weir_run_request)WEIR_RUN_REQUEST(NULL, 0, &y, 1),
                         NULL, &err),
        &err);
    memcpy(got[i], weir_tensor_data(y.tensor), sizeof got[i]);
    weir_tensor_release(y.tensor);
    weir_session_release(s);
    weir_graph_release(product);
    weir_runtime_release(own);
  }
  assert_memory_equal(got[0], got[1], sizeof got[0]);
}

static void test_errors(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *x = vector(4, 1);
  weir_feed feeds[] = {WEIR_FEED("xx", x), WEIR_FEED("x", x)};
  weir_fetch y = WEIR_FETCH("y");
  assert_error(
      weir_session_run(session,
                       &(weir_run_request)WEIR_RUN_REQUEST(feeds, 1, &y, 1),
                       NULL, &err),
      &err, "W4011");
  assert_non_null(strstr(err.message, "no input xx; it has x"));
  assert_error(weir_session_run(
                   session, &(weir_run_request)WEIR_RUN_REQUEST(NULL, 0, &y, 1),
                   NULL, &err),
               &err, "W4012");
  assert_non_null(strstr(err.message, "x"));
  feeds[0].name = "x";
  assert_error(
      weir_session_run(session,
                       &(weir_run_request)WEIR_RUN_REQUEST(feeds, 2, &y, 1),
                       NULL, &err),
      &err, "W0004");
  y.name = "yy";
  assert_error(
      weir_session_run(session,
                       &(weir_run_request)WEIR_RUN_REQUEST(feeds, 1, &y, 1),
                       NULL, &err),
      &err, "W4016");
  y.name = NULL;
  assert_error(
      weir_session_run(session,
                       &(weir_run_request)WEIR_RUN_REQUEST(feeds, 1, &y, 1),
                       NULL, &err),
      &err, "W0004");
  feeds[0].struct_size = 4;
  assert_error(
      weir_session_run(session,
                       &(weir_run_request)WEIR_RUN_REQUEST(feeds, 1, &y, 1),
                       NULL, &err),
      &err, "W0004");
  assert_error(weir_session_run(
                   session, &(weir_run_request)WEIR_RUN_REQUEST(NULL, 1, &y, 1),
                   NULL, &err),
               &err, "W0004");
  weir_tensor_release(x);
}

/* A failed node is named; values that do not depend on it arrive. */
static void test_partial(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT, own = WEIR_ERROR_INIT;
  const int64_t two = 2, bad[] = {0, 9};
  weir_tensor *x = vector(4, 1), *i = NULL;
  assert_ok(weir_tensor_from_data(runtime,
                                  &(weir_tensor_spec)WEIR_TENSOR_SPEC(
                                      WEIR_I64, 1, &two, sizeof bad),
                                  bad, &i, &err),
            &err);
  weir_feed feeds[] = {WEIR_FEED("x", x), WEIR_FEED("i", i)};
  weir_fetch fetches[] = {WEIR_FETCH("y"), WEIR_FETCH("g")};
  fetches[1].error = &own;
  assert_error(
      weir_session_run(
          session, &(weir_run_request)WEIR_RUN_REQUEST(feeds, 2, fetches, 2),
          NULL, &err),
      &err, "W5002");
  assert_string_equal(err.node, "g");
  assert_int_equal(fetches[0].status, WEIR_OK);
  assert_true(at(fetches[0].tensor, 0) == 2);
  assert_int_equal(fetches[1].status, WEIR_OUT_OF_RANGE);
  assert_null(fetches[1].tensor);
  assert_string_equal(own.id, "W5002");
  weir_tensor_release(fetches[0].tensor);
  weir_tensor_release(x);
  weir_tensor_release(i);
}

static void test_bound(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *x = vector(4, 1);
  weir_feed feed = WEIR_FEED("x", x);
  weir_fetch y = WEIR_FETCH("y");
  weir_bound *bound = NULL;
  assert_ok(weir_session_bind(
                session, &(weir_run_request)WEIR_RUN_REQUEST(&feed, 1, &y, 1),
                &bound, &err),
            &err);
  for (int run = 0; run < 3; run++) {
    ((float *)weir_tensor_mutable_data(x))[0] = (float)run;
    assert_ok(weir_bound_run(bound, NULL, &err), &err);
    assert_true(at(y.tensor, 0) == (float)run + 1);
  }
  weir_run_opts opts = {.struct_size = sizeof opts, .timeout_ns = 1000000000};
  assert_ok(weir_bound_run(bound, &opts, &err), &err);
  weir_bound_release(bound);
  weir_tensor_release(y.tensor);
  weir_tensor_release(x);
}

static void test_variables(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *x = vector(4, 1), *v = NULL, *five = vector(2, 5);
  const char *target = "bump";
  weir_feed feed = WEIR_FEED("x", x);
  weir_run_request bump = {.struct_size = sizeof bump,
                           .feeds = &feed,
                           .feed_count = 1,
                           .targets = &target,
                           .target_count = 1};
  assert_ok(weir_session_variable_set(session, "v", five, &err), &err);
  assert_ok(weir_session_run(session, &bump, NULL, &err), &err);
  assert_ok(weir_session_run(session, &bump, NULL, &err), &err);
  assert_ok(weir_session_variable_get(session, "v", &v, &err), &err);
  assert_true(at(v, 0) == 7 && at(v, 1) == 8);
  weir_tensor_release(v);
  assert_error(weir_session_variable_set(session, "v", x, &err), &err, "W4009");
  assert_error(weir_session_variable_get(session, "y", &v, &err), &err,
               "W0004");
  assert_error(weir_session_variable_get(session, "q", &v, &err), &err,
               "W4016");
  weir_tensor_release(x);
  weir_tensor_release(five);
}

typedef struct values {
  int count, failed;
  char last[64];
} values;

static void on_value(void *self, const char *node, size_t size, uint32_t port,
                     const weir_tensor *tensor) {
  values *v = self;
  (void)port;
  assert_non_null(weir_tensor_data(tensor));
  if (size == 1 && *node == 'a') v->count++;
}

static void on_failed(void *self, const weir_error *error) {
  values *v = self;
  v->failed++;
  memcpy(v->last, error->node, sizeof v->last);
}

static void test_observed(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  const int64_t two = 2, bad[] = {0, 9};
  values v = {0};
  const char *dump = "a";
  weir_tensor *x = vector(4, 1), *i = NULL;
  assert_ok(weir_tensor_from_data(runtime,
                                  &(weir_tensor_spec)WEIR_TENSOR_SPEC(
                                      WEIR_I64, 1, &two, sizeof bad),
                                  bad, &i, &err),
            &err);
  weir_feed feeds[] = {WEIR_FEED("x", x), WEIR_FEED("i", i)};
  weir_fetch g = WEIR_FETCH("g");
  weir_run_opts opts = {.struct_size = sizeof opts,
                        .dump = &dump,
                        .dump_count = 1,
                        .on_value = on_value,
                        .on_failed = on_failed,
                        .self = &v};
  assert_error(
      weir_session_run(session,
                       &(weir_run_request)WEIR_RUN_REQUEST(feeds, 2, &g, 1),
                       &opts, &err),
      &err, "W5002");
  assert_int_equal(v.count, 2); /* both parts of the split */
  assert_int_equal(v.failed, 1);
  assert_string_equal(v.last, "g");
  weir_tensor_release(x);
  weir_tensor_release(i);
}

/* Until the run has ended: a cancel before it begins is none. */
static void *cancel_soon(void *arg) {
  const atomic_bool *ended = arg;
  struct timespec t = {0, 50000000};
  while (!atomic_load(ended)) {
    nanosleep(&t, NULL);
    weir_session_cancel(session);
  }
  return NULL;
}

static void test_cancel_and_deadline(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *x = vector(4, 1);
  weir_feed feed = WEIR_FEED("x", x);
  weir_fetch slow = WEIR_FETCH("slow");
  pthread_t thread;
  atomic_bool ended = false;
  pthread_create(&thread, NULL, cancel_soon, &ended);
  assert_error(
      weir_session_run(session,
                       &(weir_run_request)WEIR_RUN_REQUEST(&feed, 1, &slow, 1),
                       NULL, &err),
      &err, "W5005");
  atomic_store(&ended, true);
  pthread_join(thread, NULL);
  weir_run_opts opts = {.struct_size = sizeof opts, .timeout_ns = 50000000};
  slow = (weir_fetch)WEIR_FETCH("slow");
  assert_error(
      weir_session_run(session,
                       &(weir_run_request)WEIR_RUN_REQUEST(&feed, 1, &slow, 1),
                       &opts, &err),
      &err, "W5006");
  /* The session goes on. */
  weir_fetch y = WEIR_FETCH("y");
  assert_ok(weir_session_run(
                session, &(weir_run_request)WEIR_RUN_REQUEST(&feed, 1, &y, 1),
                NULL, &err),
            &err);
  weir_tensor_release(y.tensor);
  weir_tensor_release(x);
}

static void *run_many(void *arg) {
  weir_tensor *x = vector(4, *(float *)arg);
  weir_feed feed = WEIR_FEED("x", x);
  for (int i = 0; i < 200; i++) {
    weir_fetch y = WEIR_FETCH("y");
    assert_int_equal(
        weir_session_run(session,
                         &(weir_run_request)WEIR_RUN_REQUEST(&feed, 1, &y, 1),
                         NULL, NULL),
        0);
    assert_true(at(y.tensor, 0) == *(float *)arg + 1);
    weir_tensor_release(y.tensor);
  }
  weir_tensor_release(x);
  return NULL;
}

static void test_many_threads(void **state) {
  (void)state;
  pthread_t threads[4];
  float firsts[] = {1, 10, 100, 1000};
  for (int i = 0; i < 4; i++)
    pthread_create(&threads[i], NULL, run_many, &firsts[i]);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_run),
                                     cmocka_unit_test(test_options_of_gpus),
                                     cmocka_unit_test(test_errors),
                                     cmocka_unit_test(test_partial),
                                     cmocka_unit_test(test_bound),
                                     cmocka_unit_test(test_variables),
                                     cmocka_unit_test(test_observed),
                                     cmocka_unit_test(test_cancel_and_deadline),
                                     cmocka_unit_test(test_many_threads)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
