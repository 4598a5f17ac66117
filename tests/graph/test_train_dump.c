/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/strbuf.h"
#include "tests/graph/trainee.h"

/* The rewritten graph, node by node: an update stands where its gradient is
 * final and its variable has no reader left. */

static const char kGraph[] =
    "weir: 1\n"
    "inputs: {x: 'f32[2, 3]', t: 'f32[2, 1]'}\n"
    "nodes:\n"
    "  v: var([3, 3])\n"
    "  w: var([3, 1])\n"
    "  h: matmul(x, v)\n"
    "  y: matmul(h, w)\n"
    "  loss: reduce_sum(mul(y, t))\n"
    "outputs: [y]\n"
    "train:\n"
    "  minimize: loss\n";

/* Nodes from |from| on as "name = op(inputs)". */
static void dump(const weir_graph *g, uint32_t from, weir_strbuf *text) {
  for (uint32_t id = from; id < g->node_count; id++) {
    const weir_node *node = &g->nodes[id];
    weir_strbuf_printf(text, "%.*s = %s(", WEIR_SV(node->name), node->op->name);
    for (uint32_t i = 0; i < node->input_count; i++) {
      const weir_value *v = &g->values[node->inputs[i]];
      weir_strbuf_printf(text, i > 0 ? ", %.*s" : "%.*s",
                         WEIR_SV(g->nodes[v->node].name));
      if (v->port > 0) weir_strbuf_printf(text, ":%u", v->port);
    }
    weir_strbuf_text(text, ")\n");
  }
}

static void check(const char *section, const char *want) {
  char text[2048];
  trainee t;
  weir_strbuf got;
  snprintf(text, sizeof text, "%s%s", kGraph, section);
  trainee_open(&t, text, 1);
  weir_strbuf_init(&got, weir_allocator_system());
  dump(t.train->graph, t.graph->node_count, &got);
  assert_string_equal(got.data, want);
  weir_strbuf_release(&got);
  trainee_close(&t);
}

static void test_plain(void **state) {
  (void)state;
  check("  optimizer: sgd(lr=0.1)\n",
        "train/global_step/init = const()\n"
        "train/global_step = state(train/global_step/init)\n"
        "train/const_0 = const()\n"
        "train/step = add(train/global_step, train/const_0)\n"
        "train/global_step/assign = assign(train/global_step, train/step)\n"
        "train/learning_rate = const()\n"
        "grad/loss/ones_like_0 = ones_like(loss)\n"
        "grad/loss/reshape_1 = reshape(grad/loss/ones_like_0)\n"
        "grad/loss/expand_2 = expand(grad/loss/reshape_1)\n"
        "grad/loss/mul/mul_3 = mul(grad/loss/expand_2, t)\n"
        "grad/y/matmul_4 = matmul(grad/loss/mul/mul_3, w)\n"
        "grad/y/matmul_5 = matmul(h, grad/loss/mul/mul_3)\n"
        "train/w/apply = apply_sgd(w, grad/y/matmul_5, train/learning_rate)\n"
        "train/w/assign = assign(w, train/w/apply)\n"
        "grad/h/matmul_6 = matmul(x, grad/y/matmul_4)\n"
        "train/v/apply = apply_sgd(v, grad/h/matmul_6, train/learning_rate)\n"
        "train/v/assign = assign(v, train/v/apply)\n");
}

/* All updates wait for the norm of all gradients. */
static void test_everything(void **state) {
  (void)state;
  check(
      "  optimizer: momentum(lr=0.1, l2=0.5)\n"
      "  schedule: step(every=10)\n"
      "  trainable: [w]\n"
      "  clip: {value: 1, global_norm: 3}\n"
      "  accumulate: 2\n"
      "  ema: {decay: 0.5}\n",

      "train/global_step/init = const()\n"
      "train/global_step = state(train/global_step/init)\n"
      "train/const_0 = const()\n"
      "train/step = add(train/global_step, train/const_0)\n"
      "train/global_step/assign = assign(train/global_step, train/step)\n"
      "train/cast_1 = cast(train/global_step)\n"
      "train/const_2 = const()\n"
      "train/div_3 = div(train/cast_1, train/const_2)\n"
      "train/floor_4 = floor(train/div_3)\n"
      "train/const_5 = const()\n"
      "train/pow_6 = pow(train/const_5, train/floor_4)\n"
      "train/const_7 = const()\n"
      "train/mul_8 = mul(train/const_7, train/pow_6)\n"
      "train/learning_rate = cast(train/mul_8)\n"
      "grad/loss/ones_like_0 = ones_like(loss)\n"
      "grad/loss/reshape_1 = reshape(grad/loss/ones_like_0)\n"
      "grad/loss/expand_2 = expand(grad/loss/reshape_1)\n"
      "grad/loss/mul/mul_3 = mul(grad/loss/expand_2, t)\n"
      "grad/y/matmul_4 = matmul(h, grad/loss/mul/mul_3)\n"
      "w/grad_sum/init = fill()\n"
      "w/grad_sum = state(w/grad_sum/init)\n"
      "train/w/accumulate = assign_add(w/grad_sum, grad/y/matmul_4)\n"
      "train/add_9 = add(w/grad_sum, grad/y/matmul_4)\n"
      "train/const_10 = const()\n"
      "train/div_11 = div(train/add_9, train/const_10)\n"
      "train/zeros_like_12 = zeros_like(w/grad_sum)\n"
      "train/w/restart = assign(w/grad_sum, train/zeros_like_12)\n"
      "train/clip_13 = clip(train/div_11)\n"
      "train/grad_norm = global_norm(train/clip_13)\n"
      "train/const_14 = const()\n"
      "train/max_15 = max(train/grad_norm, train/const_14)\n"
      "train/clip_factor = div(train/const_14, train/max_15)\n"
      "w/momentum_accum/init = fill()\n"
      "w/momentum_accum = state(w/momentum_accum/init)\n"
      "train/w/apply = apply_momentum(w, w/momentum_accum, train/clip_13, "
      "train/learning_rate, train/clip_factor)\n"
      "train/w/assign = assign(w, train/w/apply)\n"
      "train/w/assign_accum = assign(w/momentum_accum, train/w/apply:1)\n"
      "w/ema = state(w/init)\n"
      "train/w/ema = apply_ema(w/ema, train/w/apply)\n"
      "train/w/ema_assign = assign(w/ema, train/w/ema)\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain),
                                     cmocka_unit_test(test_everything)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
