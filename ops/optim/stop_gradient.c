/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/fold.h"
#include "ops/grads.h"

static weir_status shape(weir_shape_ctx *ctx) {
  return weir_rule_view(ctx, weir_shape_in(ctx, 0));
}

const weir_op_def weir_op_stop_gradient = {
    .name = "stop_gradient",
    .summary = "The input itself, for gradients a constant.",
    .example = "stop_gradient(x)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES}},
    .flags = WEIR_OP_VIEW,
    .shape = shape,
    .grad = weir_grad_zero,
    .cost = weir_cost_none};
