/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  WEIR_TRY(weir_rule_finite(ctx, "alpha", false));
  return weir_rule_unary(ctx);
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0), y = weir_grad_out(ctx, 0);
  weir_ref dy = weir_grad_dy(ctx, 0);
  double alpha = weir_grad_attr(ctx, "alpha")->f;
  weir_ref zero = weir_g_number(ctx, x, 0);
  weir_ref above = weir_g2(ctx, "greater", x, zero);

  weir_ref slope = weir_g2(ctx, "add", y, weir_g_number(ctx, y, alpha));
  weir_ref below = weir_g2(ctx, "mul", dy, slope);
  weir_grad_add(ctx, 0, weir_g3(ctx, "where", above, dy, below));
  return WEIR_OK;
}

const weir_op_def weir_op_elu = {
    .name = "elu",
    .summary = "x where it is above 0, else alpha (exp(x) - 1).",
    .source = "Clevert, Unterthiner and Hochreiter, arXiv:1511.07289",
    .example = "elu(x)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"alpha", WEIR_ATTR_FLOAT, "1.0", "minus the limit far below 0"}},
    .refuses = {"an alpha that is not finite", "integers", "bool"},
    .flags = WEIR_OP_ELEMENTWISE,
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_math};
