/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0), dy = weir_grad_dy(ctx, 0);

  weir_ref bell =
      weir_g1(ctx, "exp", weir_g1(ctx, "neg", weir_g1(ctx, "square", x)));
  weir_ref slope = weir_g_scale(ctx, bell, 1.1283791670955126); /* 2/sqrt(pi) */
  weir_grad_add(ctx, 0, weir_g2(ctx, "mul", dy, slope));
  return WEIR_OK;
}

const weir_op_def weir_op_erf = {
    .name = "erf",
    .summary = "Error function of x, element by element.",
    .doc = "2 / sqrt(pi) times the integral of exp(-t t) from 0 to x.",
    .example = "erf(x)",
    WEIR_FLOAT_UNARY_FIELDS,
    .grad = grad,
    .cost = weir_cost_math};
