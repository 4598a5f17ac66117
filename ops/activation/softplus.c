/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0), dy = weir_grad_dy(ctx, 0);

  weir_ref slope = weir_g1(ctx, "sigmoid", x);
  weir_grad_add(ctx, 0, weir_g2(ctx, "mul", dy, slope));
  return WEIR_OK;
}

const weir_op_def weir_op_softplus = {
    .name = "softplus",
    .summary = "log(1 + exp(x)), element by element.",
    .doc = "Computed as max(x, 0) + log(1 + exp(-|x|)), so it never overflows.",
    .source = "Dugas et al., NIPS 13 (2000) 472-478",
    .example = "softplus(x)",
    WEIR_FLOAT_UNARY_FIELDS,
    .grad = grad,
    .cost = weir_cost_math};
