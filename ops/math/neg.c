/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/fold.h"
#include "ops/grads.h"

static bool fold(int64_t a, int64_t b, int64_t *out) {
  (void)b;
  return !__builtin_sub_overflow((int64_t)0, a, out);
}

static weir_status shape(weir_shape_ctx *ctx) {
  return weir_rule_unary_fold(ctx, fold);
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_grad_add(ctx, 0, weir_g1(ctx, "neg", weir_grad_dy(ctx, 0)));
  return WEIR_OK;
}

const weir_op_def weir_op_neg = {
    .name = "neg",
    .summary = "-x, element by element.",
    .doc = "Integers wrap on overflow; -x of u8 is 256 - x.",
    .example = "neg(x)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_NUMBERS}},
    .refuses = {"bool"},
    .flags = WEIR_OP_ELEMENTWISE,
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_unary};
