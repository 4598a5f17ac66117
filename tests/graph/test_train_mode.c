/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "runtime/base/env_system.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/graph/load/load.h"
#include "runtime/graph/train/train_graph.h"
#include "runtime/graph/train/train_spec.h"
#include "tests/graph/trainee.h"

/* Nodes that behave differently while training. */

static const char kNorm[] =
    "weir: 1\n"
    "import: {nn: std/nn}\n"
    "inputs: {x: 'f32[6]'}\n"
    "nodes:\n"
    "  w: var([], init=ones())\n"
    "  n: nn.batch_norm(reshape(mul(x, w), [3, 2]), momentum=0.75)\n"
    "  y: add(n, 1)\n"
    "  loss: mean(square(y))\n"
    "outputs: [y]\n"
    "train:\n"
    "  minimize: loss\n"
    "  optimizer: sgd(lr=0.5)\n"
    "  trainable: ['n/bias']\n";

static const double kX[6] = {1, 10, 2, 20, 6, 60};

/* Channel c holds (c == 0 ? 1 : 10) times 1, 2, 6: mean 3, variance 14/3. */
static void test_batch_norm(void **state) {
  (void)state;
  trainee t;
  trainee_open(&t, kNorm, 1);
  trainee_feed x = {"x", kX, 6};
  /* Normalised numbers have mean square 1 (epsilon apart), plus 1 squared. */
  assert_float_equal(trainee_run(&t, &x, 1, false), 2, 1e-5);
  assert_float_equal(trainee_get(&t, "n/mean", 0), 0.25 * 3, 1e-6);
  assert_float_equal(trainee_get(&t, "n/mean", 1), 0.25 * 30, 1e-5);
  assert_float_equal(trainee_get(&t, "n/var", 0), (float)(0.75 + 0.25 * 14 / 3),
                     1e-6);
  assert_float_equal(trainee_get(&t, "n/var", 1),
                     (float)(0.75 + 0.25 * 1400 / 3), 1e-4);
  /* d loss / d bias is 2 (mean of y) / 2 channels = 1 at first */
  assert_float_equal(trainee_get(&t, "n/bias", 0), -0.5, 1e-6);
  assert_float_equal(trainee_run(&t, &x, 1, false), 1.25, 1e-5);
  assert_float_equal(trainee_get(&t, "n/mean", 0), 0.75 * 0.75 + 0.25 * 3,
                     1e-6);
  trainee_close(&t);
}

/* The old ids evaluate: by the averages, without changing them. */
static void test_evaluation(void **state) {
  (void)state;
  trainee t;
  trainee_open(&t, kNorm, 1);
  weir_value_id y = weir_graph_find_value(t.graph, WEIR_SV_LIT("y"));
  assert_int_equal(weir_graph_find_value(t.train->graph, WEIR_SV_LIT("y")), y);
  weir_value_id twin = t.train->train_values[y];
  assert_int_not_equal(twin, y);
  const weir_graph *g = t.train->graph;
  assert_true(weir_sv_is(g->nodes[g->values[twin].node].name, "training/y"));
  weir_value_id x = weir_graph_find_value(t.graph, WEIR_SV_LIT("x"));
  assert_int_equal(t.train->train_values[x], x);
  trainee_close(&t);
}

/* With `accumulate` every run is a batch of its own for the averages. */
static void test_accumulated(void **state) {
  (void)state;
  trainee t;
  char text[1024];
  snprintf(text, sizeof text, "%s  accumulate: 2\n", kNorm);
  trainee_open(&t, text, 1);
  trainee_feed x = {"x", kX, 6};
  trainee_run(&t, &x, 1, true);
  assert_float_equal(trainee_get(&t, "n/mean", 0), 0.75, 1e-6);
  assert_float_equal(trainee_get(&t, "n/bias", 0), 0, 0);
  assert_float_equal(trainee_get(&t, "n/bias/grad_sum", 0), 1, 1e-6);
  trainee_run(&t, &x, 1, false);
  assert_float_equal(trainee_get(&t, "n/mean", 0), 0.75 * 0.75 + 0.75, 1e-6);
  assert_float_equal(trainee_get(&t, "n/bias", 0), -0.5, 1e-6);
  assert_float_equal(trainee_get(&t, "n/bias/grad_sum", 0), 0, 0);
  trainee_close(&t);
}

/* The graph's own assignments belong to a step; their variables are not
 * trained.
 */
static void test_own_assign(void **state) {
  (void)state;
  trainee t;
  trainee_open(&t,
               "weir: 1\n"
               "nodes:\n"
               "  w: var([], init=ones())\n"
               "  own: var([], init=zeros())\n"
               "  count: state([], dtype=i64, init=zeros())\n"
               "  more: assign_add(count, 1)\n"
               "  moved: assign(own, mul(w, 3))\n"
               "  loss: square(add(w, own))\n"
               "outputs: [loss]\n"
               "train: {minimize: loss, optimizer: sgd(lr=0.25)}\n",
               1);
  assert_int_equal(t.train->trained_count, 1);
  assert_float_equal(trainee_run(&t, NULL, 0, false), 1, 0);
  assert_float_equal(trainee_get(&t, "w", 0), 0.5, 0);
  assert_float_equal(trainee_get(&t, "own", 0), 3, 0);
  assert_float_equal(trainee_run(&t, NULL, 0, false), 12.25, 0);
  assert_int_equal(trainee_get(&t, "count", 0), 2);
  trainee_close(&t);
}

/* The gradient goes through elements that stayed, and evaluation drops nothing:
 * with weights of 1 and a loss that sums them, a step of 1 makes 1 - 2 of an
 * element that stayed, and the loss counts it twice. */
static void test_dropout(void **state) {
  (void)state;
  static const char text[] =
      "weir: 1\n"
      "nodes:\n"
      "  w: var([1000], init=ones())\n"
      "  y: dropout(w, keep=0.5)\n"
      "  loss: reduce_sum(y)\n"
      "outputs: [loss]\n"
      "train: {minimize: loss, optimizer: sgd(lr=1.0)}\n";
  trainee t;
  trainee_open(&t, text, 2);
  weir_exec_fetch fetch = {
      .value = weir_graph_find_value(t.graph, WEIR_SV_LIT("loss"))};
  weir_error err = WEIR_ERROR_INIT;
  weir_exec_request request = {.fetches = &fetch, .fetch_count = 1};
  assert_ok(weir_exec_run(t.session, &request, &err), &err);
  assert_true(weir_tensor_get_f64(fetch.tensor, 0) == 1000);
  weir_tensor_unref(fetch.tensor);
  double loss = trainee_run(&t, NULL, 0, false), stayed = 0;
  for (int64_t i = 0; i < 1000; i++) {
    double w = trainee_get(&t, "w", i);
    assert_true(w == 1 || w == -1);
    stayed += w == -1;
  }
  assert_true(loss == 2 * stayed);
  assert_true(stayed > 400 && stayed < 600); /* deviation 16 */
  trainee_close(&t);
}

/* dropout in a body drops while training only. */
static void test_body(void **state) {
  (void)state;
  trainee t;
  trainee_open(&t,
               "weir: 1\n"
               "nodes:\n"
               "  w: var([], init=ones())\n"
               "  run:\n"
               "    scan:\n"
               "      over: {xt: 'ones([64, 4])'}\n"
               "      carry: {h: 'zeros([4])'}\n"
               "      nodes: {h2: 'add(h, dropout(xt, keep=0.5))'}\n"
               "      next: {h: h2}\n"
               "  total: reduce_sum(stop_gradient(run.h))\n"
               "  loss: mul(w, total)\n"
               "outputs: [total]\n"
               "train: {minimize: loss, optimizer: sgd(lr=0.0)}\n",
               1);
  weir_value_id total = weir_graph_find_value(t.graph, WEIR_SV_LIT("total"));
  double loss = trainee_run(&t, NULL, 0, false);
  assert_true(loss > 128 && loss < 384 && loss != 256);
  assert_float_equal(trainee_fetch(&t, total), 256, 0);
  trainee_close(&t);
}

/* Averages of a batch_norm in a body would have to leave it. */
static void test_batch_norm_in_body(void **state) {
  (void)state;
  static const char kText[] =
      "weir: 1\n"
      "nodes:\n"
      "  w: var([], init=ones())\n"
      "  c: var([2], init=ones())\n"
      "  run:\n"
      "    scan:\n"
      "      over: {xt: 'ones([4, 3, 2])'}\n"
      "      carry: {h: 'zeros([3, 2])'}\n"
      "      nodes: {h2: 'add(h, batch_norm(xt, c, c, c, c))'}\n"
      "      next: {h: h2}\n"
      "  loss: mul(w, reduce_sum(stop_gradient(run.h)))\n"
      "outputs: [loss]\n"
      "train: {minimize: loss, optimizer: sgd(lr=0.5)}\n";
  weir_error err = WEIR_ERROR_INIT;
  weir_load_options options = {.registry = weir_builtin_registry()};
  weir_graph *g = NULL;
  weir_train_spec *spec = NULL;
  weir_train_graph *train = NULL;
  assert_ok(weir_graph_load_text(weir_env_system(), weir_sv_from(kText), "t",
                                 &options, &g, &err),
            &err);
  assert_ok(weir_train_spec_read(g, NULL, &spec, &err), &err);
  assert_error(weir_graph_train(g, spec, &train, &err), &err, "W1122");
  weir_train_spec_release(spec);
  weir_graph_unref(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_batch_norm),
                                     cmocka_unit_test(test_evaluation),
                                     cmocka_unit_test(test_accumulated),
                                     cmocka_unit_test(test_own_assign),
                                     cmocka_unit_test(test_body),
                                     cmocka_unit_test(test_batch_norm_in_body),
                                     cmocka_unit_test(test_dropout)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
