/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "kernels/kernel.h"
#include "runtime/base/env_system.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/load/load.h"
#include "tests/check.h"

/* Loads |text|; the caller releases. */
static weir_graph *load(const char *text) {
  weir_load_options options = {.registry = weir_builtin_registry()};
  weir_graph *g = NULL;
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_graph_load_text(weir_env_system(), weir_sv_from(text), "t",
                                 &options, &g, &err),
            &err);
  return g;
}

static void assert_type(const weir_graph *g, const char *name,
                        const char *want) {
  char text[256];
  weir_value_id id = weir_graph_find_value(g, weir_sv_from(name));
  if (id == WEIR_NO_VALUE) fail_msg("no value '%s'", name);
  assert_string_equal(weir_graph_type_text(g, id, text, sizeof text), want);
}

static const weir_node *node_of(const weir_graph *g, const char *name) {
  weir_node_id id = weir_graph_find_node(g, weir_sv_from(name));
  if (id == UINT32_MAX) fail_msg("no node '%s'", name);
  return &g->nodes[id];
}

static void test_graphs_of_the_gallery(void **state) {
  (void)state;
  static const char *const kNames[] = {
      "tiny_matmul", "mlp",     "lenet",      "transformer_block",   "wide",
      "deep",        "conv_bn", "regression", "embedding_classifier"};
  for (size_t i = 0; i < sizeof kNames / sizeof kNames[0]; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/graphs/%s.weir.yaml",
             getenv("WEIR_SOURCE_ROOT"), kNames[i]);
    weir_load_options options = {.registry = weir_builtin_registry()};
    weir_graph *g = NULL;
    weir_error err = WEIR_ERROR_INIT;
    assert_ok(weir_graph_load(weir_env_system(), path, &options, &g, &err),
              &err);
    assert_true(g->output_count > 0);
    weir_graph_unref(g);
  }
}

static void test_any_order_and_nesting(void **state) {
  (void)state;
  weir_graph *g = load(
      "weir: 1\n"
      "inputs: {x: 'f32[2, 3]'}\n"
      "nodes:\n"
      "  y: relu(add(h, 1))\n"
      "  h: matmul(x, w)\n"
      "  w: var([dim(x, -1), 4], init=0.5)\n"
      "outputs: {result: y, again: mean(y)}\n");
  assert_type(g, "y", "f32[2, 4]");
  assert_type(g, "again", "f32[]");
  assert_type(g, "result", "f32[2, 4]");
  assert_type(g, "y/add", "f32[2, 4]");
  assert_type(g, "y/const", "f32[]");
  assert_int_equal(g->input_count, 1);
  assert_int_equal(g->output_count, 2);
  assert_false(g->inputs[0].has_default);
  for (uint32_t i = 0; i < g->node_count; i++)
    for (uint32_t k = 0; k < g->nodes[i].input_count; k++)
      assert_true(g->values[g->nodes[i].inputs[k]].node < i);
  weir_graph_unref(g);
}

static void test_results_and_fields(void **state) {
  (void)state;
  weir_graph *g = load(
      "weir: 1\n"
      "inputs: {x: 'f32[2, 6]'}\n"
      "blocks:\n"
      "  both:\n"
      "    in: {v: 'f32[2, 2]'}\n"
      "    out: {up: 'add(v, 1)', down: 'sub(v, 1)'}\n"
      "nodes:\n"
      "  a, b, c: split(x, 3, axis=-1)\n"
      "  p: both(b)\n"
      "  q: mul(p.up, p:1)\n"
      "outputs: [q, c]\n");
  assert_type(g, "a", "f32[2, 2]");
  assert_type(g, "c", "f32[2, 2]");
  assert_type(g, "a:1", "f32[2, 2]");
  assert_int_equal(weir_graph_find_value(g, WEIR_SV_LIT("b")),
                   weir_graph_find_value(g, WEIR_SV_LIT("a:1")));
  assert_string_equal(node_of(g, "q")->op->name, "mul");
  weir_graph_unref(g);
}

static void test_blocks_have_their_own_variables(void **state) {
  (void)state;
  weir_graph *g = load(
      "weir: 1\n"
      "import: {nn: std/nn}\n"
      "inputs: {x: 'f32[4, 8]'}\n"
      "nodes:\n"
      "  a: nn.dense(x, units=8, act=relu)\n"
      "  b: nn.dense(a, 3)\n"
      "outputs: [b]\n");
  assert_type(g, "a/w", "f32[8, 8]");
  assert_type(g, "b/w", "f32[8, 3]");
  assert_type(g, "b", "f32[4, 3]");
  assert_int_not_equal(node_of(g, "a/w/init")->seed,
                       node_of(g, "b/w/init")->seed);
  weir_graph_unref(g);
}

static void test_repeat(void **state) {
  (void)state;
  weir_graph *g = load(
      "weir: 1\n"
      "params: {n: 3}\n"
      "inputs: {x: 'f32[2]'}\n"
      "nodes:\n"
      "  h[0]: add(x, 0)\n"
      "  outer:\n"
      "    repeat: {i: 0..n}\n"
      "    nodes:\n"
      "      t: mul(h[i], i)\n"
      "      h[i+1]: neg(t)\n"
      "      inner:\n"
      "        repeat: {j: 0..2}\n"
      "        nodes: {u: 'add(t, j)', v: 'add(u, t[i])'}\n"
      "  y: add(h[n], u[2][1])\n"
      "outputs: [y]\n");
  assert_type(g, "h[3]", "f32[2]");
  assert_type(g, "u[2][1]", "f32[2]");
  assert_type(g, "v[0][1]", "f32[2]");
  assert_int_equal(weir_graph_find_node(g, WEIR_SV_LIT("h[4]")), UINT32_MAX);
  weir_graph_unref(g);
}

static void test_long_form_devices_and_after(void **state) {
  (void)state;
  weir_graph *g = load(
      "weir: 1\n"
      "inputs: {x: 'f32[2, 2]'}\n"
      "nodes:\n"
      "  v: var([2, 2])\n"
      "  s: assign_add(v, x)\n"
      "  y: {op: matmul, in: [x, 'relu(v)'], attrs: {transpose_a: true},\n"
      "      device: 'gpu:0', after: [s]}\n"
      "  z: neg(y) @ /job:worker/task:1\n"
      "outputs: [z]\n");
  const weir_node *y = node_of(g, "y");
  assert_int_equal(y->after_count, 1);
  assert_string_equal(g->nodes[y->after[0]].op->name, "assign_add");
  assert_true(
      y->attrs[weir_op_attr_index(y->op, WEIR_SV_LIT("transpose_a"))].b);
  assert_true(weir_sv_is(y->device, "/device:GPU:0"));
  assert_true(weir_sv_is(node_of(g, "z")->device, "/job:worker/task:1"));
  assert_int_equal(node_of(g, "z")->mark.line, 8);
  assert_int_equal(node_of(g, "z")->mark.col, 6);
  weir_graph_unref(g);
}

static void test_params_and_dims(void **state) {
  (void)state;
  static const char kText[] =
      "weir: 1\n"
      "params: {batch: 4, keep: [2, 3], lr: 0.5}\n"
      "dims: {n: null, m: 8}\n"
      "inputs: {x: 'f32[n, m]', k: 'i64[batch + 1]'}\n"
      "nodes:\n"
      "  y: mul(concat(x, x), lr)\n"
      "  z: ones([keep[0] * 2, keep[-1], batch // 3])\n"
      "  loss: mean(mul(var([]), y))\n"
      "train: {minimize: loss, optimizer: sgd(lr=lr), epochs: '${batch}'}\n"
      "outputs: [y, z]\n";
  weir_param_value params[] = {{WEIR_SV_LIT("batch"), WEIR_SV_LIT("7")},
                               {WEIR_SV_LIT("m"), WEIR_SV_LIT("9")}};
  weir_load_options options = {
      .registry = weir_builtin_registry(), .params = params, .param_count = 2};
  weir_graph *g = NULL;
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_graph_load_text(weir_env_system(), weir_sv_from(kText), "t",
                                 &options, &g, &err),
            &err);
  assert_type(g, "x", "f32[n, 9]");
  assert_type(g, "k", "i64[8]");
  assert_type(g, "z", "f32[4, 3, 2]");
  assert_true(weir_sv_is(weir_yaml_get(g->train, "epochs")->text, "7"));
  weir_graph_unref(g);
}

static void test_literals(void **state) {
  (void)state;
  weir_graph *g = load(
      "weir: 1\n"
      "inputs: {i: 'i32[3]', f: 'f64[2] = 2', l: 'i64[2] = [5, 6]'}\n"
      "nodes:\n"
      "  a: add(i, 1)\n"
      "  b: where(greater(i, 2), i, -7)\n"
      "  c: const([[true], [false]])\n"
      "  d: const([1, 2], dtype=u8)\n"
      "  e: 3\n"
      "  g: gather(f, [0, 1, 1])\n"
      "  m: max(i)\n"
      "  n: max(i, 0)\n"
      "  s: const([- 9223372036854775808], dtype=i64)\n"
      "  u: const([1.00000005960464477539062501, 1e40, .inf], dtype=f64)\n"
      "  v: const([1.00000005960464477539062501, .inf])\n"
      "outputs: [a, b, c, d, e, g]\n");
  assert_type(g, "a/const", "i32[]");
  assert_type(g, "b", "i32[3]");
  assert_type(g, "c", "bool[2, 1]");
  assert_type(g, "d", "u8[2]");
  assert_type(g, "e", "f32[]");
  assert_type(g, "g", "f64[3]");
  assert_type(g, "f", "f64[2]");
  assert_type(g, "m", "i32[]");
  assert_type(g, "n", "i32[3]");
  assert_true(g->inputs[1].has_default);
  const weir_value *d = &g->values[weir_graph_find_value(g, WEIR_SV_LIT("d"))];
  assert_non_null(d->known);
  assert_int_equal(weir_tensor_get_i64(d->known, 1), 2);
  const weir_value *s = &g->values[weir_graph_find_value(g, WEIR_SV_LIT("s"))];
  assert_true(weir_tensor_get_i64(s->known, 0) == INT64_MIN);
  const weir_value *u = &g->values[weir_graph_find_value(g, WEIR_SV_LIT("u"))];
  assert_true(weir_tensor_get_f64(u->known, 1) == 1e40);
  /* Between two floats, above the middle by less than a double tells. */
  const weir_value *v = &g->values[weir_graph_find_value(g, WEIR_SV_LIT("v"))];
  assert_true(weir_tensor_get_f64(v->known, 0) == 1 + 0x1p-23);
  weir_graph_unref(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_graphs_of_the_gallery),
      cmocka_unit_test(test_any_order_and_nesting),
      cmocka_unit_test(test_results_and_fields),
      cmocka_unit_test(test_blocks_have_their_own_variables),
      cmocka_unit_test(test_repeat),
      cmocka_unit_test(test_long_form_devices_and_after),
      cmocka_unit_test(test_params_and_dims),
      cmocka_unit_test(test_literals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
