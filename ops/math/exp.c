/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref y = weir_grad_out(ctx, 0), dy = weir_grad_dy(ctx, 0);
  weir_grad_add(ctx, 0, weir_g2(ctx, "mul", dy, y));
  return WEIR_OK;
}

const weir_op_def weir_op_exp = {
    .name = "exp",
    .summary = "e to the power of x, element by element.",
    .example = "exp(x)",
    WEIR_FLOAT_UNARY_FIELDS,
    .grad = grad,
    .cost = weir_cost_math};
