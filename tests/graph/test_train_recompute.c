/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/session/binding.h"
#include "tests/graph/trainee.h"

/* `recompute`: the same bits from less memory. */

enum { kBlocks = 6, kWidth = 64, kRows = 1024 };

/* Blocks of a product and a few element-wise nodes whose values the gradients
 * need; with random numbers that must come out the same again. */
static void write_text(char *text, size_t size, const char *more) {
  int n = snprintf(text, size,
                   "weir: 1\n"
                   "inputs: {x: 'f32[%d]'}\n"
                   "blocks:\n"
                   "  layer:\n"
                   "    in: [x]\n"
                   "    nodes:\n"
                   "      w: var([%d, %d], init=glorot_uniform())\n"
                   "      a: tanh(matmul(x, w))\n"
                   "      b: sigmoid(mul(a, 3.0))\n"
                   "      c: dropout(exp(mul(a, b)), keep=0.75)\n"
                   "      d: tanh(mul(c, b))\n"
                   "    out: d\n"
                   "nodes:\n"
                   "  h[0]: reshape(x, [%d, %d])\n"
                   "  all:\n"
                   "    repeat: {i: 0..%d}\n"
                   "    nodes: {'h[i+1]': 'layer(h[i])'}\n"
                   "  loss: mean(square(h[%d]))\n"
                   "outputs: [loss]\n"
                   "train:\n"
                   "  minimize: loss\n"
                   "  optimizer: momentum(lr=0.5)\n"
                   "%s",
                   kRows * kWidth, kWidth, kWidth, kRows, kWidth, kBlocks,
                   kBlocks, more);
  assert_true(n > 0 && (size_t)n < size);
}

/* Three steps; the sum of the last weights, and the arena. */
static size_t train(const char *more, double *loss, double *weights) {
  static double x[kRows * kWidth];
  char text[2048];
  trainee t;
  weir_error err = WEIR_ERROR_INIT;
  write_text(text, sizeof text, more);
  trainee_open(&t, text, 2);
  for (int i = 0; i < kRows * kWidth; i++) x[i] = (i * 37 % 101) * 0.01 - 0.5;
  trainee_feed feed = {"x", x, kRows * kWidth};
  for (int i = 0; i < 3; i++) *loss = trainee_run(&t, &feed, 1, false);
  for (int i = 0; i < kWidth; i++)
    weights[i] = trainee_get(&t, "h[1]/w", i * kWidth + i);
  weir_tensor *tensor = NULL;
  weir_shape shape = weir_shape_of(1, (int64_t[]){kRows * kWidth});
  assert_ok(weir_tensor_create_shaped(t.world.env.alloc, WEIR_F32, &shape,
                                      &tensor, &err),
            &err);
  weir_exec_feed fed = {weir_graph_find_value(t.train->graph, WEIR_SV_LIT("x")),
                        tensor};
  weir_binding *binding = NULL;
  weir_exec_request request = {.feeds = &fed,
                               .feed_count = 1,
                               .targets = t.train->targets,
                               .target_count = t.train->target_count};
  assert_ok(weir_exec_bind(t.session, &request, &binding, &err), &err);
  size_t bytes = weir_binding_stats(binding).arena_bytes;
  weir_binding_release(binding);
  weir_tensor_unref(tensor);
  trainee_close(&t);
  return bytes;
}

static void test_less_memory(void **state) {
  (void)state;
  double plain_loss = 0, loss = 1, plain[kWidth], weights[kWidth];
  size_t all = train("", &plain_loss, plain);
  size_t less = train("  recompute: ['h[*]']\n", &loss, weights);
  assert_memory_equal(&loss, &plain_loss, sizeof loss);
  assert_memory_equal(weights, plain, sizeof weights);
  const size_t value = kRows * kWidth * sizeof(float);
  /* Each block keeps its input instead of some five values. */
  if (less + 2 * kBlocks * value > all)
    fail_msg("%zu bytes, %zu with recompute", all, less);
}

static uint32_t count_named(const weir_graph *g, const char *prefix) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < g->node_count; i++)
    count += weir_sv_starts_with(g->nodes[i].name, prefix);
  return count;
}

/* Values that leave a segment are kept; a later pattern can take a segment out.
 */
static void test_segments(void **state) {
  (void)state;
  char text[2048];
  trainee t;
  write_text(text, sizeof text, "  recompute: {'h[*]': true, 'h[3]': false}\n");
  trainee_open(&t, text, 1);
  const weir_graph *g = t.train->graph;
  assert_true(count_named(g, "again/training/h[2]/b") > 0);
  assert_int_equal(count_named(g, "again/training/h[3]/"), 0);
  assert_int_equal(
      weir_graph_find_node(g, WEIR_SV_LIT("again/training/h[2]/d")),
      UINT32_MAX);
  trainee_close(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_less_memory),
                                     cmocka_unit_test(test_segments)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
