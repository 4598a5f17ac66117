/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/fold.h"
#include "ops/grads.h"

static bool fold(int64_t a, int64_t b, int64_t *out) {
  return !__builtin_mul_overflow(a, b, out);
}

static weir_status shape(weir_shape_ctx *ctx) {
  return weir_rule_binary_fold(ctx, fold);
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref a = weir_grad_in(ctx, 0), b = weir_grad_in(ctx, 1);
  weir_ref dy = weir_grad_dy(ctx, 0);
  if (weir_grad_wanted(ctx, 0))
    weir_g_add_broadcast(ctx, 0, weir_g2(ctx, "mul", dy, b));
  if (weir_grad_wanted(ctx, 1))
    weir_g_add_broadcast(ctx, 1, weir_g2(ctx, "mul", dy, a));
  return WEIR_OK;
}

const weir_op_def weir_op_mul = {
    .name = "mul",
    .aliases = {"multiply"},
    .summary = "Product of a and b, element by element.",
    .doc = "Integers wrap on overflow.",
    .example = "mul(a, b)",
    .inputs = {{"a", "T"}, {"b", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_NUMBERS}},
    .refuses = {"shapes that do not broadcast", "bool", "inputs of two dtypes"},
    .flags = WEIR_OP_ELEMENTWISE | WEIR_OP_COMMUTATIVE,
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_unary};
