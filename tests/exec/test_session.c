/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "runtime/exec/session/binding.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_vars.h"
#include "tests/exec/maker.h"

/* A world, a pool, a graph and its session. */
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

static void open_session(bench *t, const weir_session_options *options) {
  if (t->graph == NULL) t->graph = finish(&t->m);
  assert_ok(weir_exec_session_create(&t->world.env, t->pool, t->graph, options,
                                     &t->session, &t->err),
            &t->err);
}

static void close_bench(bench *t) {
  weir_exec_session_release(t->session);
  weir_graph_unref(t->graph);
  weir_pool_release(t->pool);
  exec_world_check_empty(&t->world);
}

static float f32_at(const weir_tensor *t, int i) {
  return ((const float *)t->data)[i];
}

static const weir_dim k2[] = {{2, 0, 0}};
static const weir_dim k4[] = {{4, 0, 0}};
static const weir_dim k22[] = {{2, 0, 0}, {2, 0, 0}};

/* y = relu(x + x) + c */
static void runs_and_runs_again(void **state) {
  (void)state;
  bench t;
  open_bench(&t, 2);
  weir_value_id x = input(&t.m, "x", WEIR_F32, 1, k2, WEIR_NO_VALUE);
  weir_value_id c = constant(&t.m, "c", 0, NULL, (float[]){10});
  weir_value_id s = NODE(&t.m, "s", "add", x, x);
  weir_value_id r = NODE(&t.m, "r", "relu", s);
  weir_value_id y = NODE(&t.m, "y", "add", r, c);
  open_session(&t, NULL);
  weir_tensor *in =
      f32_tensor(&t.world.memory.base, 1, (int64_t[]){2}, (float[]){-1, 3});
  for (int i = 0; i < 3; i++) {
    weir_exec_feed feed = {x, in};
    weir_exec_fetch fetch[2] = {{.value = y}, {.value = x}};
    weir_exec_request request = {
        .feeds = &feed, .feed_count = 1, .fetches = fetch, .fetch_count = 2};
    assert_ok(weir_exec_run(t.session, &request, &t.err), &t.err);
    assert_true(f32_at(fetch[0].tensor, 0) == 10);
    assert_true(f32_at(fetch[0].tensor, 1) == 16);
    assert_true(f32_at(fetch[1].tensor, 1) == 3);
    weir_tensor_unref(fetch[0].tensor);
    weir_tensor_unref(fetch[1].tensor);
  }
  weir_tensor_unref(in);
  close_bench(&t);
}

static void binding_does_not_allocate(void **state) {
  (void)state;
  bench t;
  open_bench(&t, 2);
  weir_value_id x = input(&t.m, "x", WEIR_F32, 2, k22, WEIR_NO_VALUE);
  weir_value_id v0 = constant(&t.m, "v0", 2, k22, (float[]){1, 0, 0, 1});
  weir_value_id v = typed(&t.m, "v", "var", WEIR_F32, 2, k22, v0);
  weir_value_id p = NODE(&t.m, "p", "matmul", x, v);
  weir_value_id sum = NODE(&t.m, "sum", "assign_add", v, p);
  open_session(&t, NULL);
  weir_tensor *in = f32_tensor(&t.world.memory.base, 2, (int64_t[]){2, 2},
                               (float[]){1, 0, 0, 1});
  weir_exec_feed feed = {x, in};
  weir_exec_fetch fetch = {.value = sum};
  weir_binding *binding = NULL;
  weir_exec_request request = {
      .feeds = &feed, .feed_count = 1, .fetches = &fetch, .fetch_count = 1};
  assert_ok(weir_exec_bind(t.session, &request, &binding, &t.err), &t.err);
  for (int i = 0; i < 3; i++)
    assert_ok(weir_binding_run(binding, NULL, &t.err), &t.err);
  uint64_t calls = atomic_load(&t.world.memory.calls);
  for (int i = 0; i < 5; i++)
    assert_ok(weir_binding_run(binding, NULL, &t.err), &t.err);
  assert_int_equal(atomic_load(&t.world.memory.calls), calls);
  assert_true(f32_at(fetch.tensor, 0) == 256); /* doubled eight times */
  weir_tensor *now = NULL;
  assert_ok(
      weir_exec_variable_get(t.session, t.graph->values[v].node, &now, &t.err),
      &t.err);
  assert_true(f32_at(now, 3) == 256);
  weir_tensor_unref(now);
  weir_tensor_unref(fetch.tensor);
  weir_tensor_unref(in);
  weir_binding_release(binding);
  close_bench(&t);
}

/* Nodes that make a first value run once, not in every step. */
static void first_values_are_no_part_of_a_step(void **state) {
  (void)state;
  bench t;
  open_bench(&t, 1);
  weir_named_attr shape[] = {{"shape", ints(1, k2)}, {NULL, {0}}};
  weir_value_id init = add_attrs(&t.m, "init", "uniform", 0, NULL, shape);
  weir_value_id v = typed(&t.m, "v", "var", WEIR_F32, 1, k2, init);
  weir_value_id y = NODE(&t.m, "y", "add", v, v);
  (void)NODE(&t.m, "set", "assign", v, y);
  open_session(&t, NULL);
  weir_exec_fetch fetch = {.value = y};
  weir_binding *binding = NULL;
  weir_exec_request request = {.fetches = &fetch, .fetch_count = 1};
  assert_ok(weir_exec_bind(t.session, &request, &binding, &t.err), &t.err);
  assert_int_equal(weir_binding_stats(binding).instructions, 1);
  assert_ok(weir_binding_run(binding, NULL, &t.err), &t.err);
  assert_true(f32_at(fetch.tensor, 0) > 0 && f32_at(fetch.tensor, 0) < 2);
  weir_tensor_unref(fetch.tensor);
  weir_binding_release(binding);
  close_bench(&t);
}

static void bound_memory_must_not_overlap(void **state) {
  (void)state;
  bench t;
  open_bench(&t, 1);
  weir_value_id x = input(&t.m, "x", WEIR_F32, 1, k2, WEIR_NO_VALUE);
  weir_value_id y = NODE(&t.m, "y", "neg", x);
  open_session(&t, NULL);
  weir_tensor *in =
      f32_tensor(&t.world.memory.base, 1, (int64_t[]){2}, (float[]){1, 2});
  weir_exec_feed feed = {x, in};
  weir_exec_fetch fetch[] = {{.value = y, .tensor = in}, {.value = y}};
  weir_binding *binding = NULL;
  weir_exec_request request = {
      .feeds = &feed, .feed_count = 1, .fetches = fetch, .fetch_count = 1};
  assert_error(weir_exec_bind(t.session, &request, &binding, &t.err), &t.err,
               "W0004");
  assert_string_equal(t.err.message, "input 0 and output 0 share memory");
  fetch[0].tensor = NULL;
  request.fetch_count = 2;
  assert_ok(weir_exec_bind(t.session, &request, &binding, &t.err), &t.err);
  assert_ok(weir_binding_run(binding, NULL, &t.err), &t.err);
  for (int i = 0; i < 2; i++) {
    assert_true(f32_at(fetch[i].tensor, 1) == -2);
    weir_tensor_unref(fetch[i].tensor);
  }
  weir_binding_release(binding);
  weir_tensor_unref(in);
  close_bench(&t);
}

/* gather fails on data; another output does not depend on it. */
static void failure_is_named_and_others_delivered(void **state) {
  (void)state;
  bench t;
  open_bench(&t, 2);
  weir_value_id x = input(&t.m, "x", WEIR_F32, 1, k4, WEIR_NO_VALUE);
  weir_value_id i = input(&t.m, "i", WEIR_I32, 1, k2, WEIR_NO_VALUE);
  weir_value_id v = typed(&t.m, "v", "var", WEIR_F32, 1, k4,
                          constant(&t.m, "v0", 1, k4, (float[]){1, 1, 1, 1}));
  weir_value_id g = NODE(&t.m, "picked", "gather", x, i);
  weir_value_id bad = NODE(&t.m, "bad", "neg", g);
  weir_value_id good = NODE(&t.m, "good", "neg", x);
  weir_value_id set = NODE(&t.m, "set", "assign", v, good);
  open_session(&t, NULL);
  weir_tensor *in = f32_tensor(&t.world.memory.base, 1, (int64_t[]){4},
                               (float[]){1, 2, 3, 4});
  weir_tensor *index = NULL;
  weir_shape two = weir_shape_of(1, (int64_t[]){2});
  assert_ok(weir_tensor_create_shaped(&t.world.memory.base, WEIR_I32, &two,
                                      &index, &t.err),
            &t.err);
  weir_tensor_set_i64(index, 0, 1);
  weir_tensor_set_i64(index, 1, 9);
  weir_exec_feed feeds[] = {{x, in}, {i, index}};
  weir_error why = WEIR_ERROR_INIT;
  weir_exec_fetch fetch[] = {
      {.value = bad, .error = &why}, {.value = good}, {.value = set}};
  weir_exec_request request = {
      .feeds = feeds, .feed_count = 2, .fetches = fetch, .fetch_count = 3};
  assert_error(weir_exec_run(t.session, &request, &t.err), &t.err, "W5002");
  assert_string_equal(t.err.node, "picked");
  assert_int_equal(t.err.line, 3);
  assert_non_null(strstr(t.err.message, "f32[4], i32[2]"));
  assert_int_not_equal(fetch[0].status, WEIR_OK);
  assert_string_equal(why.node, "picked");
  assert_null(fetch[0].tensor);
  assert_int_equal(fetch[1].status, WEIR_OK);
  assert_true(f32_at(fetch[1].tensor, 3) == -4);
  weir_tensor *now = NULL;
  assert_ok(
      weir_exec_variable_get(t.session, t.graph->values[v].node, &now, &t.err),
      &t.err);
  assert_true(f32_at(now, 0) == 1); /* the step failed */
  weir_tensor_unref(now);
  for (int k = 1; k < 3; k++) weir_tensor_unref(fetch[k].tensor);
  /* The frame that failed serves again. */
  weir_tensor_set_i64(index, 1, 0);
  weir_exec_fetch again = {.value = bad};
  request.fetches = &again;
  request.fetch_count = 1;
  for (int k = 0; k < 2; k++) {
    again.tensor = NULL;
    assert_ok(weir_exec_run(t.session, &request, &t.err), &t.err);
    assert_true(f32_at(again.tensor, 1) == -1);
    weir_tensor_unref(again.tensor);
  }
  weir_tensor_unref(in);
  weir_tensor_unref(index);
  close_bench(&t);
}

static void batch_sizes_get_their_programs(void **state) {
  (void)state;
  bench t;
  open_bench(&t, 2);
  uint32_t batch = weir_graph_builder_symbol(t.m.b, weir_sv_from("batch"));
  weir_dim dims[] = {{0, batch, 0}, {2, 0, 0}};
  weir_value_id x = input(&t.m, "x", WEIR_F32, 2, dims, WEIR_NO_VALUE);
  weir_value_id y = NODE(&t.m, "y", "add", x, x);
  open_session(&t, NULL);
  for (int64_t n = 0; n < 20; n++) {
    weir_tensor *in =
        f32_tensor(&t.world.memory.base, 2, (int64_t[]){n, 2}, NULL);
    for (int64_t k = 0; k < 2 * n; k++) weir_tensor_set_i64(in, k, k);
    weir_exec_feed feed = {x, in};
    weir_exec_fetch fetch = {.value = y};
    weir_exec_request request = {
        .feeds = &feed, .feed_count = 1, .fetches = &fetch, .fetch_count = 1};
    assert_ok(weir_exec_run(t.session, &request, &t.err), &t.err);
    assert_int_equal(fetch.tensor->shape.dims[0].value, n);
    if (n > 0) assert_true(f32_at(fetch.tensor, 1) == 2);
    weir_tensor_unref(fetch.tensor);
    weir_tensor_unref(in);
  }
  close_bench(&t);
}

static void limits_and_wrong_feeds_are_refused(void **state) {
  (void)state;
  bench t;
  open_bench(&t, 1);
  weir_dim big[] = {{1024, 0, 0}, {1024, 0, 0}};
  weir_value_id x = input(&t.m, "x", WEIR_F32, 2, big, WEIR_NO_VALUE);
  weir_value_id h = NODE(&t.m, "h", "neg", x);
  weir_value_id y = add_attrs(&t.m, "y", "reduce_sum", 1, &h, NULL);
  weir_session_options options = {.memory_limit = 1 << 20, .no_fusion = true};
  open_session(&t, &options);
  weir_tensor *in =
      f32_tensor(&t.world.memory.base, 2, (int64_t[]){1024, 1024}, NULL);
  weir_exec_feed feed = {x, in};
  weir_exec_fetch fetch = {.value = y};
  weir_exec_request request = {
      .feeds = &feed, .feed_count = 1, .fetches = &fetch, .fetch_count = 1};
  assert_error(weir_exec_run(t.session, &request, &t.err), &t.err, "W6002");
  assert_non_null(strstr(t.err.message, "1048576"));
  request.feed_count = 0;
  assert_error(weir_exec_run(t.session, &request, &t.err), &t.err, "W4012");
  weir_tensor *small = f32_scalar(&t.world.memory.base, 1);
  feed.tensor = small;
  request.feed_count = 1;
  assert_error(weir_exec_run(t.session, &request, &t.err), &t.err, "W4009");
  weir_tensor_unref(small);
  weir_tensor_unref(in);
  close_bench(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs_and_runs_again),
      cmocka_unit_test(binding_does_not_allocate),
      cmocka_unit_test(first_values_are_no_part_of_a_step),
      cmocka_unit_test(bound_memory_must_not_overlap),
      cmocka_unit_test(failure_is_named_and_others_delivered),
      cmocka_unit_test(batch_sizes_get_their_programs),
      cmocka_unit_test(limits_and_wrong_feeds_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
