/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/loss/loss.h"

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref a = weir_grad_in(ctx, 0), b = weir_grad_in(ctx, 1);
  weir_ref off = weir_g2(ctx, "sub", a, b);
  return weir_grad_loss(ctx, weir_g_scale(ctx, off, 2));
}

const weir_op_def weir_op_mse = {
    .name = "mse",
    .summary = "Mean of the squared differences of a and b.",
    .doc = "The mean of no elements is NaN.",
    .example = "mse(predicted, wanted)",
    .attrs = {WEIR_LOSS_REDUCTION},
    .refuses = {"shapes that differ", "another reduction", "integers"},
    .shape = weir_rule_loss,
    .grad = grad,
    WEIR_LOSS_FIELDS};
