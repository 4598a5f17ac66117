/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/loss/loss.h"

static weir_status shape(weir_shape_ctx *ctx) {
  WEIR_TRY(weir_rule_finite(ctx, "delta", true));
  return weir_rule_loss(ctx);
}

/* The slope is the difference, kept within delta. */
static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref a = weir_grad_in(ctx, 0), b = weir_grad_in(ctx, 1);
  weir_ref off = weir_g2(ctx, "sub", a, b);
  double delta = weir_grad_attr(ctx, "delta")->f;
  weir_named_attr limits[] = {{"min", weir_attr_float(-delta)},
                              {"max", weir_attr_float(delta)},
                              {NULL, {WEIR_ATTR_NONE, 0, {0}}}};
  return weir_grad_loss(ctx, weir_grad_node(ctx, "clip", 1, &off, limits));
}

const weir_op_def weir_op_huber = {
    .name = "huber",
    .summary = "Mean of squares of small differences, of sizes of large ones.",
    .doc =
        "With d = a - b: d d / 2 where |d| <= delta, else delta (|d| - delta / "
        "2). The mean of no elements is NaN.",
    .source = "Huber, Ann. Math. Statist. 35 (1964) 73-101",
    .example = "huber(predicted, wanted, delta=0.5)",
    .attrs = {{"delta", WEIR_ATTR_FLOAT, "1.0",
               "where the square turns into a line"},
              WEIR_LOSS_REDUCTION},
    .refuses = {"shapes that differ", "a delta that is not above 0",
                "another reduction", "integers"},
    .shape = shape,
    .grad = grad,
    WEIR_LOSS_FIELDS};
