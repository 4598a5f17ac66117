/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/builder.h"
#include "runtime/graph/node.h"
#include "runtime/graph/pass/pass.h"
#include "tests/check.h"
#include "tests/graph/toy_ops.h"

static const weir_registry kNone;

static weir_graph_builder *make(const weir_allocator *alloc) {
  weir_graph_builder *b = NULL;
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_graph_builder_create(alloc, &kNone, 7, &b, &err), &err);
  return b;
}

static weir_status add_source(weir_graph_builder *b, const char *name,
                              weir_dim *dims, uint32_t rank, weir_dtype dtype,
                              weir_node_id *out, weir_diag *diag) {
  weir_attr attrs[3] = {{.kind = WEIR_ATTR_INTS, .count = rank, .dims = dims},
                        {.kind = WEIR_ATTR_DTYPE, .dtype = dtype}};
  weir_node_spec spec = {.name = weir_sv_from(name),
                         .op = &kToySource,
                         .attrs = attrs,
                         .mark = {"g.yaml", 3, 5, 3, 9}};
  return weir_graph_builder_add(b, &spec, out, diag);
}

static weir_status add_op(weir_graph_builder *b, const char *name,
                          const weir_op_def *op, uint32_t count,
                          const weir_value_id *in, weir_node_id *out,
                          weir_diag *diag) {
  weir_node_spec spec = {.name = weir_sv_from(name),
                         .op = op,
                         .inputs = in,
                         .input_count = count,
                         .mark = {"g.yaml", 9, 12, 9, 20}};
  return weir_graph_builder_add(b, &spec, out, diag);
}

static void test_types_follow(void **state) {
  (void)state;
  weir_graph_builder *b = make(weir_allocator_system());
  weir_node_id x, y;
  weir_error err = WEIR_ERROR_INIT;
  uint32_t batch = weir_graph_builder_symbol(b, WEIR_SV_LIT("batch"));
  assert_int_equal(weir_graph_builder_symbol(b, WEIR_SV_LIT("batch")), batch);
  weir_dim dims[2] = {{0, batch, 0}, {784, 0, 0}};
  assert_ok(add_source(b, "x", dims, 2, WEIR_I32, &x, NULL), &err);
  weir_value_id in[2] = {weir_graph_builder_output(b, x, 0)};
  in[1] = in[0];
  assert_ok(add_op(b, "y", &kToyAdd, 2, in, &y, NULL), &err);
  weir_graph_port port = {.name = WEIR_SV_LIT("result"),
                          .value = weir_graph_builder_output(b, y, 0)};
  assert_ok(weir_graph_builder_add_output(b, &port, &err), &err);
  weir_graph *g = NULL;
  assert_ok(weir_graph_builder_finish(b, &g, &err), &err);
  weir_graph_builder_release(b);
  char text[64];
  assert_string_equal(weir_graph_type_text(g, port.value, text, sizeof text),
                      "i32[batch, 784]");
  assert_int_equal(weir_graph_find_node(g, WEIR_SV_LIT("y")), y);
  assert_int_equal(weir_graph_find_value(g, WEIR_SV_LIT("result")), port.value);
  assert_int_equal(weir_graph_find_value(g, WEIR_SV_LIT("y:0")), port.value);
  assert_int_equal(weir_graph_find_value(g, WEIR_SV_LIT("y:1")), WEIR_NO_VALUE);
  assert_int_equal(weir_graph_find_node(g, WEIR_SV_LIT("z")), UINT32_MAX);
  assert_ptr_equal(g->values[0].shape, g->values[1].shape);
  assert_int_not_equal(g->nodes[x].seed, g->nodes[y].seed);
  weir_graph_unref(g);
}

static void test_refusals(void **state) {
  (void)state;
  weir_graph_builder *b = make(weir_allocator_system());
  weir_node_id x, f, bits, n;
  weir_error err = WEIR_ERROR_INIT;
  static weir_diag diag;
  weir_dim d2[2] = {{2, 0, 0}, {3, 0, 0}};
  assert_ok(add_source(b, "x", d2, 2, WEIR_I32, &x, NULL), &err);
  assert_ok(add_source(b, "f", d2, 1, WEIR_F32, &f, NULL), &err);
  assert_ok(add_source(b, "bits", d2, 2, WEIR_BOOL, &bits, NULL), &err);
  assert_error(add_source(b, "x", d2, 2, WEIR_F32, &n, &diag), &diag.error,
               "W1104");
  weir_value_id in[3] = {x, f, bits};
  assert_error(add_op(b, "n", &kToyAdd, 2, in, &n, &diag), &diag.error,
               "W2005");
  assert_string_equal(diag.error.node, "n");
  assert_string_equal(diag.error.hint, "cast(..., i32) converts");
  assert_error(add_op(b, "n", &kToyNeg, 1, in + 2, &n, &diag), &diag.error,
               "W2005");
  assert_error(add_op(b, "n", &kToyAdd, 1, in, &n, &diag), &diag.error,
               "W1108");
  assert_error(add_op(b, "n", &kToyAdd, 3, in, &n, &diag), &diag.error,
               "W1108");
  assert_error(add_op(b, "n", &kToySource, 0, NULL, &n, &diag), &diag.error,
               "W1110");
  weir_dim big[2] = {{INT64_MAX / 2, 0, 0}, {3, 0, 0}};
  assert_error(add_source(b, "n", big, 2, WEIR_F32, &n, &diag), &diag.error,
               "W2001");
  weir_dim neg[1] = {{-2, 0, 0}};
  assert_error(add_source(b, "n", neg, 1, WEIR_F32, &n, &diag), &diag.error,
               "W2002");
  weir_graph_builder_release(b);
}

static void test_chain_of_reasons(void **state) {
  (void)state;
  weir_graph_builder *b = make(weir_allocator_system());
  weir_node_id x, y, h, n;
  weir_error err = WEIR_ERROR_INIT;
  static weir_diag diag;
  weir_dim d[2] = {{2, 0, 0}, {3, 0, 0}};
  assert_ok(add_source(b, "x", d, 2, WEIR_F32, &x, NULL), &err);
  assert_ok(add_source(b, "y", d, 1, WEIR_F32, &y, NULL), &err);
  weir_value_id in[2] = {x, y};
  assert_ok(add_op(b, "h", &kToyNeg, 1, in, &h, NULL), &err);
  in[0] = weir_graph_builder_output(b, h, 0);
  assert_error(add_op(b, "n", &kToyAdd, 2, in, &n, &diag), &diag.error,
               "W2010");
  assert_string_equal(diag.error.message, "add: shapes differ, [2, 3] and [2]");
  assert_string_equal(diag.error.hint, "make them equal");
  assert_int_equal(diag.error.line, 9);
  assert_int_equal(diag.error.col, 12);
  assert_int_equal(diag.label_count, 2);
  assert_string_equal(diag.labels[0].text, "h is f32[2, 3]");
  assert_string_equal(diag.labels[1].text, "y is f32[2]");
  assert_int_equal(diag.note_count, 1);
  assert_string_equal(diag.notes[0],
                      "h is f32[2, 3]: neg of x, which is f32[2, 3]");
  assert_string_equal(diag.label, "takes a [...], b [...]");
  weir_graph_builder_release(b);
}

static weir_status copy_all(const weir_graph *g, weir_graph **out,
                            weir_error *err) {
  weir_pass pass;
  weir_status s = weir_pass_begin(&pass, g, err);
  for (weir_node_id i = 0; s == WEIR_OK && i < g->node_count; i++)
    s = weir_pass_copy(&pass, i, NULL, UINT32_MAX, err);
  return weir_pass_end(&pass, s, out, err);
}

/* Everything the tests above do that can run out of memory. */
static weir_status scenario(const weir_allocator *alloc) {
  weir_graph_builder *b = NULL;
  weir_graph *g = NULL, *g2 = NULL;
  weir_node_id x = 0, y = 0;
  weir_error err = WEIR_ERROR_INIT;
  weir_dim d[2] = {{2, 0, 0}, {3, 0, 0}};
  weir_value_id in[2] = {0, 0};
  weir_status s = weir_graph_builder_create(alloc, &kNone, 7, &b, &err);
  if (s == WEIR_OK) s = add_source(b, "x", d, 2, WEIR_F32, &x, NULL);
  if (s == WEIR_OK) s = add_op(b, "y", &kToyAdd, 2, in, &y, NULL);
  if (s == WEIR_OK) s = weir_graph_builder_finish(b, &g, &err);
  weir_graph_builder_release(b);
  if (s == WEIR_OK) s = copy_all(g, &g2, &err);
  weir_graph_unref(g);
  weir_graph_unref(g2);
  return s;
}

static void test_allocation_sweep(void **state) {
  (void)state;
  for (int forever = 0; forever < 2; forever++) {
    for (uint64_t k = 1;; k++) {
      weir_counted_allocator counted;
      weir_counted_allocator_init(&counted, NULL);
      counted.fail_at = k;
      counted.fail_forever = forever != 0;
      weir_status s = scenario(&counted.base);
      assert_int_equal(atomic_load(&counted.live_blocks), 0);
      if (s == WEIR_OK) break;
      assert_int_equal(s, WEIR_RESOURCE_EXHAUSTED);
      assert_true(k < 1000);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_types_follow),
                                     cmocka_unit_test(test_refusals),
                                     cmocka_unit_test(test_chain_of_reasons),
                                     cmocka_unit_test(test_allocation_sweep)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
