/* SPDX-License-Identifier: Apache-2.0
 * The host's allocator, the memory limit, and every allocation failing once:
 * every failure is reported, and nothing is left behind. */
#include <string.h>

#include "tests/api/host.h"

static const char text[] =
    "weir: 1\n"
    "dims: {n: null}\n"
    "inputs: {x: 'f32[n, 3]', s: 'f32[] = 2'}\n"
    "nodes:\n"
    "  w: var([3, 4], init=ones())\n"
    "  y: relu(matmul(mul(x, s), w))\n"
    "  z: reduce_sum(y)\n"
    "outputs: [y, z]\n";

/* Load, run, bind, run, export; |out| is kept past the runtime. */
static weir_status scenario(host *h, uint64_t limit, weir_tensor **out,
                            weir_error *err) {
  weir_allocator_hook hook = {sizeof hook, h, host_alloc, host_free};
  weir_runtime_opts opts = {.struct_size = sizeof opts,
                            .threads = 1,
                            .memory_limit = limit,
                            .allocator = &hook};
  const int64_t dims[] = {2, 3};
  const float data[] = {1, 2, 3, 4, 5, 6};
  weir_runtime *runtime = NULL;
  weir_graph *graph = NULL;
  weir_session *session = NULL;
  weir_bound *bound = NULL;
  weir_tensor *x = NULL;
  weir_fetch fetches[] = {WEIR_FETCH("y"), WEIR_FETCH("z")};
  weir_fetch again[] = {WEIR_FETCH("z")};
  weir_status s = weir_runtime_create(&opts, &runtime, err);
  if (s == WEIR_OK)
    s = weir_graph_load_buffer(runtime, text, strlen(text), "g", NULL, &graph,
                               err);
  if (s == WEIR_OK)
    s = weir_session_create(runtime, graph, NULL, &session, err);
  if (s == WEIR_OK)
    s = weir_tensor_from_data(
        runtime,
        &(weir_tensor_spec)WEIR_TENSOR_SPEC(WEIR_F32, 2, dims, sizeof data),
        data, &x, err);
  weir_feed feed = WEIR_FEED("x", x);
  if (s == WEIR_OK)
    s = weir_session_run(
        session, &(weir_run_request)WEIR_RUN_REQUEST(&feed, 1, fetches, 2),
        NULL, err);
  if (s == WEIR_OK)
    s = weir_session_bind(
        session, &(weir_run_request)WEIR_RUN_REQUEST(&feed, 1, again, 1),
        &bound, err);
  if (s == WEIR_OK) s = weir_bound_run(bound, NULL, err);
  if (s == WEIR_OK) *out = weir_tensor_retain(again[0].tensor);
  for (int i = 0; i < 2; i++) weir_tensor_release(fetches[i].tensor);
  weir_tensor_release(again[0].tensor);
  weir_tensor_release(x);
  /* In an odd order on purpose. */
  weir_runtime_release(runtime);
  weir_graph_release(graph);
  weir_session_release(session);
  weir_bound_release(bound);
  return s;
}

static void test_tensor_outlives_runtime(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  host h = {0};
  weir_tensor *out = NULL;
  assert_ok(scenario(&h, 0, &out, &err), &err);
  assert_true(h.live > 0);
  assert_true(*(const float *)weir_tensor_data(out) == 168);
  weir_tensor_release(out);
  assert_int_equal(h.live, 0);
}

static void test_each_allocation_fails_once(void **state) {
  (void)state;
  sweep(scenario, false);
}

static void test_each_allocation_fails_for_ever(void **state) {
  (void)state;
  sweep(scenario, true);
}

static void test_limit(void **state) {
  (void)state;
  for (uint64_t limit = 256; limit < (1u << 26); limit += limit / 2) {
    weir_error err = WEIR_ERROR_INIT;
    host h = {0};
    weir_tensor *out = NULL;
    weir_status s = scenario(&h, limit, &out, &err);
    weir_tensor_release(out);
    assert_int_equal(h.live, 0);
    if (s != WEIR_OK && strcmp(err.id, "W6001") != 0)
      assert_string_equal(err.id, "W6002");
    if (limit == 256) assert_int_not_equal(s, WEIR_OK);
    if (limit > (1u << 25)) assert_int_equal(s, WEIR_OK);
  }
}

/* ---- The limit of one graph: what a short text may ask for */

/* A graph whose size is its param: |rounds| rounds, forth and back. */
static const char rounds_text[] =
    "weir: 1\n"
    "params: {n: 10}\n"
    "inputs: {x: 'f32[2]'}\n"
    "nodes:\n"
    "  h[0]: mul(x, 1.0)\n"
    "  r:\n"
    "    repeat: {i: 0..n}\n"
    "    nodes: {'h[i+1]': 'tanh(h[i])'}\n"
    "  g: gradients(reduce_sum(h[n]), x)\n"
    "outputs: [g]\n";

typedef struct use {
  int64_t loaded, bound; /* bytes */
  uint32_t nodes;
} use;

/* Loads and compiles |n| rounds under |limit|. */
static weir_status use_of(const char *n, uint64_t limit, use *out,
                          weir_error *err) {
  host h = {0};
  weir_allocator_hook hook = {sizeof hook, &h, host_alloc, host_free};
  weir_runtime_opts opts = {.struct_size = sizeof opts,
                            .threads = 1,
                            .allocator = &hook,
                            .build_limit = limit};
  weir_param param = {sizeof param, "n", n};
  weir_load_opts load = {
      .struct_size = sizeof load, .params = &param, .param_count = 1};
  const int64_t dims[] = {2};
  weir_runtime *runtime = NULL;
  weir_graph *graph = NULL;
  weir_session *session = NULL;
  weir_bound *bound = NULL;
  weir_tensor *x = NULL;
  weir_fetch fetch = WEIR_FETCH("g");
  weir_run_stats stats = {.struct_size = sizeof stats};
  weir_status s = weir_runtime_create(&opts, &runtime, err);
  if (s == WEIR_OK)
    s = weir_graph_load_buffer(runtime, rounds_text, strlen(rounds_text), "g",
                               &load, &graph, err);
  out->loaded = (int64_t)h.bytes;
  if (s == WEIR_OK)
    s = weir_session_create(runtime, graph, NULL, &session, err);
  if (s == WEIR_OK) s = weir_tensor_create(runtime, WEIR_F32, 1, dims, &x, err);
  weir_feed feed = WEIR_FEED("x", x);
  if (s == WEIR_OK)
    s = weir_session_bind(
        session, &(weir_run_request)WEIR_RUN_REQUEST(&feed, 1, &fetch, 1),
        &bound, err);
  if (s == WEIR_OK) s = weir_bound_stats(bound, &stats, err);
  out->bound = (int64_t)h.bytes;
  out->nodes = stats.nodes;
  weir_tensor_release(fetch.tensor);
  weir_tensor_release(x);
  weir_bound_release(bound);
  weir_session_release(session);
  weir_graph_release(graph);
  weir_runtime_release(runtime);
  assert_int_equal(h.live, 0);
  return s;
}

static void test_bytes_of_a_node(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  use few, many;
  assert_ok(use_of("1000", 0, &few, &err), &err);
  assert_ok(use_of("9000", 0, &many, &err), &err);
  int64_t nodes = (int64_t)many.nodes - few.nodes;
  int64_t bytes = (many.bound - many.loaded) - (few.bound - few.loaded);
  assert_true(nodes >= 16000);
  if (bytes > 2000 * nodes) fail_msg("%ld bytes a node", (long)(bytes / nodes));
}

static void test_limit_of_a_graph(void **state) {
  (void)state;
  const uint64_t mib = 1 << 20;
  weir_error err = WEIR_ERROR_INIT;
  use u;
  /* Too large to load; loaded, but too large to compile; well. */
  assert_int_equal(use_of("20000", mib, &u, &err), WEIR_RESOURCE_EXHAUSTED);
  assert_string_equal(err.id, "W6002");
  assert_non_null(strstr(err.message, "loading"));
  assert_int_equal(use_of("5000", 10 * mib, &u, &err), WEIR_RESOURCE_EXHAUSTED);
  assert_string_equal(err.id, "W6002");
  assert_non_null(strstr(err.message, "compiling"));
  assert_ok(use_of("5000", 100 * mib, &u, &err), &err);
  assert_ok(use_of("5000", UINT64_MAX, &u, &err), &err);
}

static void test_deadline(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_runtime_opts opts = {.struct_size = sizeof opts, .timeout_ns = 1};
  weir_runtime *runtime = NULL;
  /* Its own memory is refused by then. */
  assert_int_equal(weir_runtime_create(&opts, &runtime, &err),
                   WEIR_DEADLINE_EXCEEDED);
  assert_string_equal(err.id, "W5006");
  assert_null(runtime);
}

/* A runtime and a graph whose time ends after they were made. */
static weir_runtime *make_late(weir_graph **out_graph) {
  weir_error err = WEIR_ERROR_INIT;
  weir_runtime_opts opts = {.struct_size = sizeof opts,
                            .timeout_ns = 50 * 1000000};
  for (;; opts.timeout_ns *= 2) { /* on a slow machine it passes before */
    weir_runtime *runtime = NULL;
    weir_tensor *t = NULL;
    if (weir_runtime_create(&opts, &runtime, &err) != WEIR_OK) continue;
    if (weir_graph_load_buffer(runtime, text, strlen(text), "g", NULL,
                               out_graph, &err) != WEIR_OK) {
      weir_runtime_release(runtime);
      continue;
    }
    while (weir_tensor_create(runtime, WEIR_F32, 0, NULL, &t, &err) == WEIR_OK)
      weir_tensor_release(t);
    assert_string_equal(err.id, "W5006");
    return runtime;
  }
}

/* Whatever asks for memory first says that the time is over, not the memory. */
static void test_late_calls(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *graph = NULL;
  weir_session *session = NULL;
  weir_trainer *trainer = NULL;
  weir_tensor *t = NULL;
  float x = 1;
  weir_tensor_spec spec = {
      .struct_size = sizeof spec, .dtype = WEIR_F32, .bytes = sizeof x};
  weir_runtime *runtime = make_late(&graph);
#define LATE(call)                                  \
  err = (weir_error)WEIR_ERROR_INIT;                \
  assert_int_equal((call), WEIR_DEADLINE_EXCEEDED); \
  assert_string_equal(err.id, "W5006")
  LATE(weir_session_create(runtime, graph, NULL, &session, &err));
  LATE(weir_trainer_create(runtime, graph, NULL, &trainer, &err));
  LATE(weir_tensor_from_data(runtime, &spec, &x, &t, &err));
  LATE(weir_tensor_from_memory(runtime, &spec, &x, NULL, NULL, &t, &err));
#undef LATE
  assert_null(session);
  assert_null(trainer);
  assert_null(t);
  weir_graph_release(graph);
  weir_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tensor_outlives_runtime),
      cmocka_unit_test(test_each_allocation_fails_once),
      cmocka_unit_test(test_each_allocation_fails_for_ever),
      cmocka_unit_test(test_limit),
      cmocka_unit_test(test_bytes_of_a_node),
      cmocka_unit_test(test_limit_of_a_graph),
      cmocka_unit_test(test_deadline),
      cmocka_unit_test(test_late_calls)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
