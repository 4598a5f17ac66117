/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/fold.h"
#include "ops/grads.h"

static bool fold(int64_t a, int64_t b, int64_t *out) {
  return !__builtin_sub_overflow(a, b, out);
}

static weir_status shape(weir_shape_ctx *ctx) {
  return weir_rule_binary_fold(ctx, fold);
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref dy = weir_grad_dy(ctx, 0);
  weir_g_add_broadcast(ctx, 0, dy);
  if (weir_grad_wanted(ctx, 1))
    weir_g_add_broadcast(ctx, 1, weir_g1(ctx, "neg", dy));
  return WEIR_OK;
}

const weir_op_def weir_op_sub = {
    .name = "sub",
    .aliases = {"subtract"},
    .summary = "Difference of a and b, element by element.",
    .doc = "Integers wrap on overflow.",
    .example = "sub(a, b)",
    .inputs = {{"a", "T"}, {"b", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_NUMBERS}},
    .refuses = {"shapes that do not broadcast", "inputs of two dtypes", "bool"},
    .flags = WEIR_OP_ELEMENTWISE,
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_unary};
