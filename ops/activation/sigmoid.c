/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref y = weir_grad_out(ctx, 0), dy = weir_grad_dy(ctx, 0);
  weir_grad_add(ctx, 0, weir_g2(ctx, "sigmoid_grad", y, dy));
  return WEIR_OK;
}

const weir_op_def weir_op_sigmoid = {
    .name = "sigmoid",
    .summary = "1 / (1 + exp(-x)), element by element.",
    .doc = "Computed without overflow on either side.",
    .example = "sigmoid(x)",
    WEIR_FLOAT_UNARY_FIELDS,
    .grad = grad,
    .cost = weir_cost_math};
