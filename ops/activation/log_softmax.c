/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/reduce/reduce.h"

/* dx = dy - exp(y) sum(dy). */
static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref y = weir_grad_out(ctx, 0), dy = weir_grad_dy(ctx, 0);
  int axis = (int)weir_grad_attr(ctx, "axis")->i;
  weir_ref sum = weir_g_sum(ctx, dy, 1, &axis, true);
  weir_ref back = weir_g2(ctx, "mul", weir_g1(ctx, "exp", y), sum);
  weir_grad_add(ctx, 0, weir_g2(ctx, "sub", dy, back));
  return WEIR_OK;
}

const weir_op_def weir_op_log_softmax = {
    .name = "log_softmax",
    .summary = "Logarithm of softmax along an axis.",
    .doc = "x - max - log(sum(exp(x - max))).",
    .example = "log_softmax(x, axis=-1)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"axis", WEIR_ATTR_INT, "-1",
               "axis whose exponentials sum to 1"}},
    .refuses = {"an axis outside [-rank, rank)", "scalars", "integers"},
    .shape = weir_rule_along_axis,
    .grad = grad,
    .cost = weir_cost_math};
