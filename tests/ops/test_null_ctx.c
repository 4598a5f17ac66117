/* SPDX-License-Identifier: Apache-2.0 */
/* Ops answer without a graph: their rules through the null contexts. */
#include <string.h>

#include "ops/grads.h"
#include "tests/check.h"
#include "tests/ops/null_ctx.h"

extern const weir_op_def weir_op_matmul, weir_op_mul, weir_op_scan;

/* matmul of an f32 [2, 3] and a matrix. */
static null_shape matmul_call(int64_t rows, int64_t cols) {
  static const weir_attr kPlain[WEIR_OP_ATTRS] = {
      {.kind = WEIR_ATTR_BOOL, .b = false},
      {.kind = WEIR_ATTR_BOOL, .b = false}};
  null_shape call = {.base = {.op = &weir_op_matmul,
                              .attrs = kPlain,
                              .in_count = 2,
                              .out_count = 1},
                     .in_dtypes = {WEIR_F32, WEIR_F32},
                     .in_shapes = {weir_shape_of(2, (int64_t[]){2, 3}),
                                   weir_shape_of(2, (int64_t[]){rows, cols})}};
  return call;
}

static void test_shape_rule_without_graph(void **state) {
  (void)state;
  null_shape call = matmul_call(3, 5);
  weir_shape want = weir_shape_of(2, (int64_t[]){2, 5});
  assert_ok(null_shape_run(&call), &call.err);
  assert_true(weir_shape_equal(&call.out_shapes[0], &want));
}

static void test_shape_refusal_without_graph(void **state) {
  (void)state;
  null_shape call = matmul_call(4, 5);
  assert_error(null_shape_run(&call), &call.err, "W2012");
  assert_non_null(strstr(call.err.message, "matmul: inner dimensions differ"));
}

/* Optional functions of the vtable may be missing. */
static void test_bodies_are_optional(void **state) {
  (void)state;
  null_shape call = {.base = {.op = &weir_op_scan, .out_count = 1}};
  assert_error(null_shape_run(&call), &call.err, "W1123");
}

static void test_new_dim(void **state) {
  (void)state;
  null_shape call = matmul_call(3, 5);
  assert_ok(null_shape_run(&call), &call.err);
  weir_dim a = weir_shape_new_dim(&call.base);
  weir_dim b = weir_shape_new_dim(&call.base);
  assert_false(weir_dim_equal(a, b));
}

static void test_grad_rule_without_graph(void **state) {
  (void)state;
  null_grad call = {.dtype = WEIR_F32,
                    .shape = weir_shape_of(1, (int64_t[]){4})};
  /* a is 0, b is 1, y is 2, dy is 3 */
  assert_ok(null_grad_run(&call, &weir_op_mul, 2, 1), &call.err);
  assert_int_equal(call.node_count, 2);
  assert_string_equal(call.nodes[0], "4 = mul(3, 1)");
  assert_string_equal(call.nodes[1], "5 = mul(3, 0)");
  assert_int_equal(call.dys[0], 4);
  assert_int_equal(call.dys[1], 5);
}

static weir_status failing_grad(weir_grad_ctx *ctx) {
  weir_grad_fail(ctx, WEIR_W2008, "no gradient for %d", 7);
  weir_grad_add(ctx, 0, weir_g1(ctx, "neg", weir_grad_dy(ctx, 0)));
  return WEIR_OK;
}

static void test_grad_failure_sticks(void **state) {
  (void)state;
  static const weir_op_def kOp = {.name = "odd", .grad = failing_grad};
  null_grad call = {.dtype = WEIR_F32};
  assert_error(null_grad_run(&call, &kOp, 1, 1), &call.err, "W2008");
  assert_string_equal(call.err.message, "gradient of odd: no gradient for 7");
  assert_int_equal(call.node_count, 0);
  assert_int_equal(call.dys[0], WEIR_NO_VALUE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shape_rule_without_graph),
      cmocka_unit_test(test_shape_refusal_without_graph),
      cmocka_unit_test(test_bodies_are_optional),
      cmocka_unit_test(test_new_dim),
      cmocka_unit_test(test_grad_rule_without_graph),
      cmocka_unit_test(test_grad_failure_sticks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
