/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "runtime/exec/session/binding.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/graph/grad/gradients.h"
#include "runtime/graph/load/load.h"
#include "tests/exec/maker.h"

/* Outputs that are made only where somebody reads them, dropout in and out of
 * training, and training of recurrent layers on any number of threads. */

static const char kLayers[] =
    "weir: 1\n"
    "inputs:\n"
    "  w: f32[40, 400] = uniform(-0.3, 0.3)\n"
    "  r: f32[100, 400] = uniform(-0.3, 0.3)\n"
    "  v: f32[100, 288] = uniform(-0.3, 0.3)\n"
    "  s: f32[96, 288] = uniform(-0.3, 0.3)\n"
    "  e: f32[50, 40] = uniform(-1, 1)\n"
    "  at: i64[153] = range(0, 153)\n"
    "nodes:\n"
    "  x: gather(e, reshape(cast(div(cast(at, f32), 4), i64), [17, 9]))\n"
    "  d, mask: dropout(x, keep=0.7, training=true)\n"
    "  a, h, c: lstm(d, w, r)\n"
    "  b, last: gru(dropout(a, keep=0.5, training=true), v, s, reverse=true)\n"
    "  q, z: rnn(b, ones([96, 8]), zeros([8, 8]))\n"
    "  loss: mean(square(q))\n"
    "outputs: [loss]\n";

typedef struct bench {
  exec_world world;
  weir_graph *graph;
  weir_error err;
} bench;

static void load(bench *t, const char *text) {
  memset(t, 0, sizeof *t);
  t->err.struct_size = sizeof t->err;
  exec_world_init(&t->world);
  weir_load_options options = {.registry = weir_builtin_registry(), .seed = 3};
  assert_ok(weir_graph_load_text(&t->world.env, weir_sv_from(text), "layers",
                                 &options, &t->graph, &t->err),
            &t->err);
}

static void unload(bench *t) {
  weir_graph_unref(t->graph);
  exec_world_check_empty(&t->world);
}

/* Runs |graph| for |count| values; |out| gets references. */
static weir_program_stats run(bench *t, const weir_graph *graph, int threads,
                              const weir_value_id *values, size_t count,
                              uint64_t step, weir_tensor **out) {
  weir_exec_session *session = NULL;
  weir_binding *binding = NULL;
  weir_exec_fetch fetches[8] = {{0}};
  weir_run_options options = {.step = step};
  weir_pool *pool = exec_pool(&t->world, threads);
  for (size_t i = 0; i < count; i++) fetches[i].value = values[i];
  assert_ok(weir_exec_session_create(&t->world.env, pool, graph, NULL, &session,
                                     &t->err),
            &t->err);
  weir_exec_request request = {.fetches = fetches, .fetch_count = count};
  assert_ok(weir_exec_bind(session, &request, &binding, &t->err), &t->err);
  assert_ok(weir_binding_run(binding, &options, &t->err), &t->err);
  weir_program_stats stats = weir_binding_stats(binding);
  for (size_t i = 0; i < count; i++) out[i] = fetches[i].tensor;
  weir_binding_release(binding);
  weir_exec_session_release(session);
  weir_pool_release(pool);
  return stats;
}

static weir_value_id value(const bench *t, const char *name) {
  weir_value_id id = weir_graph_find_value(t->graph, weir_sv_from(name));
  assert_int_not_equal(id, WEIR_NO_VALUE);
  return id;
}

static void assert_same(const weir_tensor *a, const weir_tensor *b) {
  assert_int_equal(a->bytes, b->bytes);
  assert_memory_equal(a->data, b->data, a->bytes);
}

/* Outputs for the gradient have no memory where there is no gradient. */
static void unread_outputs_are_left_out(void **state) {
  static const char kText[] =
      "weir: 1\n"
      "inputs:\n"
      "  x: f32[8, 64, 16] = uniform(-1, 1)\n"
      "  w: f32[16, 64] = uniform(-1, 1)\n"
      "nodes:\n"
      "  y, h, c: lstm(x, w, mul(w, uniform(0, 1, shape=[])))\n"
      "  g, i, j, gates, cells: lstm(y, w, mul(w, uniform(0, 1, shape=[])))\n"
      "outputs: [y]\n";
  const size_t cells = 8 * 64 * 16 * sizeof(float);
  (void)state;
  bench t;
  load(&t, kText);
  weir_tensor *out[3] = {NULL}, *alone[1] = {NULL};
  weir_value_id few[] = {value(&t, "g")};
  weir_value_id all[] = {value(&t, "g"), value(&t, "gates"),
                         value(&t, "cells")};
  run(&t, t.graph, 2, all, 3, 0, out);
  weir_program_stats stats = run(&t, t.graph, 2, few, 1, 0, alone);
  assert_int_equal(out[1]->bytes, 4 * cells);
  assert_int_equal(out[2]->bytes, cells);
  assert_same(out[0], alone[0]);
  /* y, and room for x w during one of the two layers */
  assert_true(stats.arena_bytes < 8 * cells);
  for (int i = 0; i < 3; i++) weir_tensor_unref(out[i]);
  weir_tensor_unref(alone[0]);
  unload(&t);
}

static void dropout_follows_the_step(void **state) {
  static const char kText[] =
      "weir: 1\n"
      "inputs:\n"
      "  x: f32[100, 100] = ones()\n"
      "nodes:\n"
      "  d, mask: dropout(x, keep=0.75, training=true)\n"
      "  e: dropout(x, keep=0.75, training=true)\n"
      "  f: dropout(x)\n"
      "  g, none: dropout(x)\n"
      "outputs: [d]\n";
  (void)state;
  bench t;
  load(&t, kText);
  weir_tensor *out[6] = {NULL}, *later[1] = {NULL};
  weir_value_id ids[] = {value(&t, "d"), value(&t, "mask"), value(&t, "e"),
                         value(&t, "f"), value(&t, "g"),    value(&t, "none")};
  run(&t, t.graph, 2, ids, 6, 0, out);
  run(&t, t.graph, 2, ids, 1, 1, later);
  int64_t stay = 0, differ = 0, moved = 0;
  for (int64_t i = 0; i < 10000; i++) {
    int64_t mask = weir_tensor_get_i64(out[1], i);
    double d = weir_tensor_get_f64(out[0], i);
    assert_true(d == (mask ? (double)(float)(1 / 0.75) : 0));
    stay += mask;
    differ += d != weir_tensor_get_f64(out[2], i);
    moved += d != weir_tensor_get_f64(later[0], i);
    assert_true(weir_tensor_get_f64(out[3], i) == 1);
    assert_true(weir_tensor_get_f64(out[4], i) == 1);
    assert_int_equal(weir_tensor_get_i64(out[5], i), 1);
  }
  /* 7500 by binomial, deviation 43; 3750 of two draws differ */
  assert_in_range(stay, 7500 - 200, 7500 + 200);
  assert_in_range(differ, 3750 - 250, 3750 + 250);
  assert_in_range(moved, 3750 - 250, 3750 + 250);
  for (int i = 0; i < 6; i++) weir_tensor_unref(out[i]);
  weir_tensor_unref(later[0]);
  unload(&t);
}

static void gradients_keep_their_bits_on_any_threads(void **state) {
  static const char *const kNames[] = {"e", "w", "r", "v", "s"};
  (void)state;
  bench t;
  load(&t, kLayers);
  weir_value_id wrt[5], fetched[6];
  weir_tensor *first[6] = {NULL}, *out[6] = {NULL};
  weir_graph *derived = NULL;
  for (int i = 0; i < 5; i++) wrt[i] = value(&t, kNames[i]);
  fetched[5] = value(&t, "loss");
  assert_ok(weir_graph_gradients(t.graph, fetched[5], wrt, 5, fetched, &derived,
                                 &t.err),
            &t.err);
  run(&t, derived, 1, fetched, 6, 4, first);
  for (int threads = 2; threads <= 8; threads *= 4) {
    run(&t, derived, threads, fetched, 6, 4, out);
    for (int i = 0; i < 6; i++) {
      assert_same(out[i], first[i]);
      weir_tensor_unref(out[i]);
    }
  }
  double sum = 0;
  for (int64_t i = 0; i < weir_shape_elements(&first[1]->shape); i++)
    sum += weir_tensor_get_f64(first[1], i) * weir_tensor_get_f64(first[1], i);
  assert_true(sum > 0);
  for (int i = 0; i < 6; i++) weir_tensor_unref(first[i]);
  weir_graph_unref(derived);
  unload(&t);
}

/* The layers written out as scans over time. */
static const char kWritten[] =
    "weir: 1\n"
    "params: {b: 5, t: 6, d: 7, u: 9}\n"
    "inputs:\n"
    "  x: f32[b, t, d] = uniform(-1, 1)\n"
    "  w: f32[d, 4 * u] = uniform(-1, 1)\n"
    "  r: f32[u, 4 * u] = uniform(-1, 1)\n"
    "  bias: f32[4 * u] = uniform(-1, 1)\n"
    "  h0: f32[b, u] = uniform(-1, 1)\n"
    "  c0: f32[b, u] = uniform(-1, 1)\n"
    "nodes:\n"
    "  y, h, c: lstm(x, w, r, bias, h0, c0)\n"
    "  slow:\n"
    "    scan:\n"
    "      over: {xt: x}\n"
    "      axis: 1\n"
    "      carry: {k: h0, m: c0}\n"
    "      nodes:\n"
    "        z: add(add(matmul(xt, w), matmul(k, r)), bias)\n"
    "        i, f, g, o: split(z, 4, axis=-1)\n"
    "        m2: add(mul(sigmoid(f), m), mul(sigmoid(i), tanh(g)))\n"
    "        k2: mul(sigmoid(o), tanh(m2))\n"
    "      next: {k: k2, m: m2}\n"
    "      stack: {y: k2}\n"
    "  w3: slice(w, [0], [3 * u], axis=[1])\n"
    "  r3: slice(r, [0], [3 * u], axis=[1])\n"
    "  b3: slice(bias, [0], [3 * u], axis=[0])\n"
    "  p, last: gru(x, w3, r3, b3, b3, h0, reverse=true)\n"
    "  backward:\n"
    "    scan:\n"
    "      over: {xt: x}\n"
    "      axis: 1\n"
    "      reverse: true\n"
    "      carry: {k: h0}\n"
    "      nodes:\n"
    "        zr, zu, zn: split(add(matmul(xt, w3), b3), 3, axis=-1)\n"
    "        qr, qu, qn: split(add(matmul(k, r3), b3), 3, axis=-1)\n"
    "        n: tanh(add(zn, mul(sigmoid(add(zr, qr)), qn)))\n"
    "        s: sigmoid(add(zu, qu))\n"
    "        k2: add(mul(sub(1, s), n), mul(s, k))\n"
    "      next: {k: k2}\n"
    "      stack: {y: k2}\n"
    "outputs: {o1: y, o2: slow.y, o3: h, o4: slow.k, o5: c, o6: slow.m,\n"
    "          o7: p, o8: backward.y}\n";

static void layers_are_what_scans_say(void **state) {
  static const char *const kNames[] = {"o1", "o2", "o3", "o4",
                                       "o5", "o6", "o7", "o8"};
  (void)state;
  bench t;
  load(&t, kWritten);
  weir_value_id ids[8];
  weir_tensor *out[8] = {NULL};
  for (int i = 0; i < 8; i++) ids[i] = value(&t, kNames[i]);
  run(&t, t.graph, 2, ids, 8, 0, out);
  for (int i = 0; i < 8; i += 2)
    for (int64_t k = 0; k < weir_shape_elements(&out[i]->shape); k++)
      assert_float_equal(weir_tensor_get_f64(out[i], k),
                         weir_tensor_get_f64(out[i + 1], k), 1e-5);
  for (int i = 0; i < 8; i++) weir_tensor_unref(out[i]);
  unload(&t);
}

/* Their gradients are those of the scans too. */
static void gradients_are_what_scans_say(void **state) {
  static const char *const kNames[] = {"x", "w", "r", "bias", "h0", "c0"};
  static const char *const kSums[][2] = {{"o1", "o2"}, {"o7", "o8"}};
  (void)state;
  bench t;
  for (int k = 0; k < 2; k++) {
    weir_tensor *out[2][5] = {{NULL}};
    load(&t, kWritten);
    for (int way = 0; way < 2; way++) {
      weir_value_id wrt[5], grads[5];
      weir_graph *derived = NULL;
      for (int i = 0; i < 5; i++) wrt[i] = value(&t, kNames[i]);
      assert_ok(weir_graph_gradients(t.graph, value(&t, kSums[k][way]), wrt, 5,
                                     grads, &derived, &t.err),
                &t.err);
      run(&t, derived, 2, grads, 5, 0, out[way]);
      weir_graph_unref(derived);
    }
    for (int i = 0; i < 5; i++)
      for (int64_t e = 0; e < weir_shape_elements(&out[0][i]->shape); e++)
        assert_float_equal(weir_tensor_get_f64(out[0][i], e),
                           weir_tensor_get_f64(out[1][i], e), 2e-5);
    for (int i = 0; i < 10; i++) weir_tensor_unref(out[i / 5][i % 5]);
    unload(&t);
  }
}

/* Two halves of a sequence, one run after the other, are the whole. */
static const char kHalves[] =
    "weir: 1\n"
    "import: {nn: std/nn}\n"
    "inputs: {x: 'f32[2, 3, 4] = uniform(-1, 1)'}\n"
    "nodes:\n"
    "  a: nn.lstm_state(x, units=5)\n"
    "  b: nn.gru_state(x, units=6)\n"
    "  c: nn.rnn_state(x, units=7)\n"
    "outputs: [a, b, c]\n";

static const char kWhole[] =
    "weir: 1\n"
    "inputs:\n"
    "  x: f32[2, 6, 4]\n"
    "  w1: f32[4, 20]\n"
    "  r1: f32[5, 20]\n"
    "  w2: f32[4, 18]\n"
    "  r2: f32[6, 18]\n"
    "  w3: f32[4, 7]\n"
    "  r3: f32[7, 7]\n"
    "nodes:\n"
    "  a, h, k: lstm(x, w1, r1)\n"
    "  b, i: gru(x, w2, r2)\n"
    "  c, j: rnn(x, w3, r3)\n"
    "outputs: [a, b, c]\n";

enum { HALVES = 10 }; /* a, b, c, x, and the weights */

/* Runs the halves as steps 0 and 1 of one session. */
static void run_halves(weir_tensor *out[2][HALVES]) {
  static const char *const kNames[HALVES] = {"a",   "b",   "c",   "x",   "a/w",
                                             "a/r", "b/w", "b/r", "c/w", "c/r"};
  bench t;
  weir_exec_session *session = NULL;
  load(&t, kHalves);
  weir_pool *pool = exec_pool(&t.world, 2);
  assert_ok(weir_exec_session_create(&t.world.env, pool, t.graph, NULL,
                                     &session, &t.err),
            &t.err);
  for (uint64_t step = 0; step < 2; step++) {
    weir_exec_fetch fetches[HALVES] = {{0}};
    weir_run_options options = {.step = step};
    for (int i = 0; i < HALVES; i++) fetches[i].value = value(&t, kNames[i]);
    weir_exec_request request = {
        .fetches = fetches, .fetch_count = HALVES, .options = &options};
    assert_ok(weir_exec_run(session, &request, &t.err), &t.err);
    for (int i = 0; i < HALVES; i++) {
      const weir_tensor *from = fetches[i].tensor;
      weir_tensor *copy = NULL; /* of memory that outlives the session */
      assert_ok(weir_tensor_create_shaped(weir_allocator_system(), from->dtype,
                                          &from->shape, &copy, &t.err),
                &t.err);
      memcpy(copy->data, from->data, from->bytes);
      weir_tensor_unref(fetches[i].tensor);
      out[step][i] = copy;
    }
  }
  weir_exec_session_release(session);
  weir_pool_release(pool);
  unload(&t);
}

static void run_whole(weir_tensor *halves[2][HALVES], weir_tensor *out[3]) {
  static const char *const kInputs[] = {"x",  "w1", "r1", "w2",
                                        "r2", "w3", "r3"};
  static const char *const kOutputs[] = {"a", "b", "c"};
  const int64_t dims[] = {2, 6, 4};
  weir_shape shape = weir_shape_of(3, dims);
  weir_tensor *x = NULL;
  bench t;
  load(&t, kWhole);
  assert_ok(weir_tensor_create_shaped(weir_allocator_system(), WEIR_F32, &shape,
                                      &x, &t.err),
            &t.err);
  for (int b = 0; b < 2; b++)
    for (int k = 0; k < 2; k++)
      memcpy((float *)x->data + (b * 2 + k) * 12,
             (float *)halves[k][3]->data + b * 12, 12 * sizeof(float));
  weir_exec_feed feeds[7];
  weir_exec_fetch fetches[3] = {{0}};
  weir_exec_session *session = NULL;
  weir_pool *pool = exec_pool(&t.world, 2);
  for (int i = 0; i < 7; i++)
    feeds[i] =
        (weir_exec_feed){value(&t, kInputs[i]), i == 0 ? x : halves[0][3 + i]};
  for (int i = 0; i < 3; i++) fetches[i].value = value(&t, kOutputs[i]);
  assert_ok(weir_exec_session_create(&t.world.env, pool, t.graph, NULL,
                                     &session, &t.err),
            &t.err);
  weir_exec_request request = {
      .feeds = feeds, .feed_count = 7, .fetches = fetches, .fetch_count = 3};
  assert_ok(weir_exec_run(session, &request, &t.err), &t.err);
  for (int i = 0; i < 3; i++) out[i] = fetches[i].tensor;
  for (int i = 0; i < 3; i++)
    for (int64_t e = 0; e < weir_shape_elements(&out[i]->shape); e++) {
      int64_t units = out[i]->shape.dims[2].value, unit = e % units;
      int64_t step = e / units % 6, b = e / units / 6;
      assert_float_equal(weir_tensor_get_f64(out[i], e),
                         weir_tensor_get_f64(halves[step / 3][i],
                                             (b * 3 + step % 3) * units + unit),
                         1e-5);
    }
  for (int i = 0; i < 3; i++) weir_tensor_unref(out[i]);
  weir_exec_session_release(session);
  weir_pool_release(pool);
  weir_tensor_unref(x);
  unload(&t);
}

static void states_go_on_from_run_to_run(void **state) {
  (void)state;
  weir_tensor *halves[2][HALVES], *whole[3];
  run_halves(halves);
  run_whole(halves, whole);
  for (int i = 0; i < 2 * HALVES; i++)
    weir_tensor_unref(halves[i / HALVES][i % HALVES]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(unread_outputs_are_left_out),
      cmocka_unit_test(dropout_follows_the_step),
      cmocka_unit_test(layers_are_what_scans_say),
      cmocka_unit_test(gradients_are_what_scans_say),
      cmocka_unit_test(states_go_on_from_run_to_run),
      cmocka_unit_test(gradients_keep_their_bits_on_any_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
