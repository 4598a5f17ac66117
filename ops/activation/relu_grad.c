/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/activation/slope.h"

/* By y it is 0. */
static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref y = weir_grad_in(ctx, 0), g = weir_grad_dy(ctx, 0);
  if (weir_grad_wanted(ctx, 1))
    weir_g_add_broadcast(ctx, 1, weir_g2(ctx, "relu_grad", y, g));
  return WEIR_OK;
}

const weir_op_def weir_op_relu_grad = {
    .name = "relu_grad",
    .summary = "Gradient of relu: dy where y is above 0, else 0.",
    .doc =
        "y is relu's value or its argument: both are above 0 in the same "
        "places.",
    .example = "relu_grad(y, dy)",
    .grad = grad,
    WEIR_SLOPE_FIELDS};
