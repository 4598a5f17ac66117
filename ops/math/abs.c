/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0), dy = weir_grad_dy(ctx, 0);

  weir_ref sign = weir_g1(ctx, "sign", x);
  weir_grad_add(ctx, 0, weir_g2(ctx, "mul", dy, sign));
  return WEIR_OK;
}

const weir_op_def weir_op_abs = {
    .name = "abs",
    .summary = "Absolute value of x, element by element.",
    .doc =
        "The smallest i32 or i64 is its own absolute value. The gradient at 0 "
        "is 0.",
    .example = "abs(x)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_NUMBERS}},
    .refuses = {"bool"},
    .flags = WEIR_OP_ELEMENTWISE,
    .shape = weir_rule_unary,
    .grad = grad,
    .cost = weir_cost_unary};
