/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/reduce/reduce.h"

/* dx = y (dy - sum(dy y)). */
static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref y = weir_grad_out(ctx, 0), dy = weir_grad_dy(ctx, 0);
  int axis = (int)weir_grad_attr(ctx, "axis")->i;
  weir_ref sum = weir_g_sum(ctx, weir_g2(ctx, "mul", dy, y), 1, &axis, true);
  weir_grad_add(ctx, 0, weir_g2(ctx, "mul", y, weir_g2(ctx, "sub", dy, sum)));
  return WEIR_OK;
}

const weir_op_def weir_op_softmax = {
    .name = "softmax",
    .summary = "exp(x) divided by its sum along an axis.",
    .doc = "The largest element is subtracted first, so no exp overflows.",
    .source = "Bridle, Neurocomputing (1990) 227-236",
    .example = "softmax(x, axis=-1)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"axis", WEIR_ATTR_INT, "-1", "axis whose elements sum to 1"}},
    .refuses = {"an axis outside [-rank, rank)", "scalars", "integers"},
    .shape = weir_rule_along_axis,
    .grad = grad,
    .cost = weir_cost_math};
