/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

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
    .inputs = {{"y", "T"}, {"dy", "T"}},
    .outputs = {{"dx", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .refuses = {"shapes that do not broadcast", "inputs of two dtypes",
                "integers"},
    .flags = WEIR_OP_ELEMENTWISE,
    .shape = weir_rule_binary,
    .grad = grad,
    .cost = weir_cost_unary};
