/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/session/session_run.h"
#include "tests/graph/trainee.h"

/* The same bits: on any number of threads, and from one process that
 * accumulates as from N that are averaged in order. */

enum { kImages = 6, kPixels = kImages * 2 * 8 * 8, kWeights = 12 };

static const char kNet[] =
    "weir: 1\n"
    "import: {nn: std/nn}\n"
    "inputs: {x: 'f32[768]'}\n"
    "nodes:\n"
    "  image: reshape(x, [6, 2, 8, 8])\n"
    "  c: nn.batch_norm(nn.conv(image, filters=4, kernel=3, pad=1), act=relu)\n"
    "  p: flatten(avg_pool(c, kernel=2, stride=2))\n"
    "  h: dropout(nn.dense(p, units=32, act=tanh), keep=0.75)\n"
    "  y: nn.dense(h, units=3)\n"
    "  label: const([0, 1, 2, 2, 1, 0], dtype=i64)\n"
    "  loss: mean(sparse_softmax_xent(y, label))\n"
    "outputs: [y]\n"
    "train:\n"
    "  minimize: loss\n"
    "  optimizer: adam(lr=0.01, l2=0.001)\n"
    "  schedule: cosine(steps=9)\n"
    "  clip: {global_norm: 0.5}\n";

static void fill(double *x, int run) {
  for (int i = 0; i < kPixels; i++)
    x[i] = ((i * 7919 + run * 104729) % 1009) * 0.002 - 1;
}

static void train(int threads, double *out) {
  static double x[kPixels];
  trainee t;
  trainee_open(&t, kNet, threads);
  trainee_feed feed = {"x", x, kPixels};
  for (int run = 0; run < 4; run++) {
    fill(x, run);
    out[run] = trainee_run(&t, &feed, 1, false);
  }
  for (int i = 0; i < kWeights; i++) {
    out[4 + i] = trainee_get(&t, "y/w", i);
    out[4 + kWeights + i] = trainee_get(&t, "c/conv/w", i);
  }
  trainee_close(&t);
}

static void test_threads(void **state) {
  (void)state;
  double one[4 + 2 * kWeights], many[4 + 2 * kWeights];
  train(1, one);
  assert_true(one[3] == one[3]);
  for (int threads = 2; threads <= 8; threads += 6) {
    train(threads, many);
    assert_memory_equal(many, one, sizeof one);
  }
}

static const char kLine[] =
    "weir: 1\n"
    "inputs: {x: 'f32[5]'}\n"
    "nodes:\n"
    "  w: var([5], init=uniform(-1, 1))\n"
    "  loss: mean(exp(mul(w, x)))\n"
    "outputs: [loss]\n"
    "train:\n"
    "  minimize: loss\n"
    "  optimizer: sgd(lr=0.3)\n";

static void line_input(double *x, int run) {
  for (int i = 0; i < 5; i++) x[i] = (double)(float)(0.1 * i - 0.07 * run);
}

/* The gradient of run |run| at the weights now, as a worker would send it. */
static void gradient(trainee *t, int run, float *out) {
  weir_error err = WEIR_ERROR_INIT;
  double x[5];
  weir_shape shape = weir_shape_of(1, (int64_t[]){5});
  weir_exec_feed fed = {
      weir_graph_find_value(t->train->graph, WEIR_SV_LIT("x")), NULL};
  assert_ok(weir_tensor_create_shaped(t->world.env.alloc, WEIR_F32, &shape,
                                      &fed.tensor, &err),
            &err);
  line_input(x, run);
  for (int i = 0; i < 5; i++) weir_tensor_set_f64(fed.tensor, i, x[i]);
  weir_exec_fetch grad = {.value = t->train->vars[0].grad};
  weir_exec_request request = {
      .feeds = &fed, .feed_count = 1, .fetches = &grad, .fetch_count = 1};
  assert_ok(weir_exec_run(t->session, &request, &err), &err);
  memcpy(out, grad.tensor->data, 5 * sizeof *out);
  weir_tensor_unref(grad.tensor);
  weir_tensor_unref(fed.tensor);
}

static void test_workers(void **state) {
  (void)state;
  enum { kWorkers = 3 };
  char text[1024];
  trainee t, one;
  trainee_open(&one, kLine, 1);
  snprintf(text, sizeof text, "%s  accumulate: %d\n", kLine, kWorkers);
  trainee_open(&t, text, 1);
  float sum[5] = {0}, grad[5], want[5];
  for (int run = 0; run < kWorkers; run++) {
    gradient(&one, run, grad);
    for (int i = 0; i < 5; i++) sum[i] += grad[i];
  }
  for (int i = 0; i < 5; i++) {
    float w = (float)trainee_get(&one, "w", i);
    want[i] = w - 0.3f * (sum[i] / kWorkers);
  }
  for (int run = 0; run < kWorkers; run++) {
    double x[5];
    line_input(x, run);
    trainee_feed feed = {"x", x, 5};
    trainee_run(&t, &feed, 1, run < kWorkers - 1);
  }
  for (int i = 0; i < 5; i++) {
    float got = (float)trainee_get(&t, "w", i);
    assert_memory_equal(&got, &want[i], sizeof got);
    assert_true(trainee_get(&t, "w/grad_sum", i) == 0);
  }
  trainee_close(&t);
  trainee_close(&one);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads),
                                     cmocka_unit_test(test_workers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
