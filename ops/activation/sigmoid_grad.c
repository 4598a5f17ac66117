/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/activation/slope.h"

/* By y it is dy (1 - 2 y). */
static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref y = weir_grad_in(ctx, 0), dy = weir_grad_in(ctx, 1);
  weir_ref g = weir_grad_dy(ctx, 0);
  if (weir_grad_wanted(ctx, 1))
    weir_g_add_broadcast(ctx, 1, weir_g2(ctx, "sigmoid_grad", y, g));
  if (!weir_grad_wanted(ctx, 0)) return WEIR_OK;
  weir_ref slope =
      weir_g2(ctx, "sub", weir_g_number(ctx, y, 1), weir_g_scale(ctx, y, 2));
  slope = weir_g2(ctx, "mul", dy, slope);
  weir_g_add_broadcast(ctx, 0, weir_g2(ctx, "mul", g, slope));
  return WEIR_OK;
}

const weir_op_def weir_op_sigmoid_grad = {
    .name = "sigmoid_grad",
    .summary = "Gradient of sigmoid: dy y (1 - y).",
    .doc = "y is sigmoid's value.",
    .example = "sigmoid_grad(y, dy)",
    .grad = grad,
    WEIR_SLOPE_FIELDS};
