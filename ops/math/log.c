/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0), dy = weir_grad_dy(ctx, 0);
  weir_grad_add(ctx, 0, weir_g2(ctx, "div", dy, x));
  return WEIR_OK;
}

const weir_op_def weir_op_log = {
    .name = "log",
    .summary = "Natural logarithm of x, element by element.",
    .doc = "log(0) is -infinity, of a negative number NaN.",
    .example = "log(x)",
    WEIR_FLOAT_UNARY_FIELDS,
    .grad = grad,
    .cost = weir_cost_math};
