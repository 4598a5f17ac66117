/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/fold.h"
#include "ops/grads.h"

static weir_status shape(weir_shape_ctx *ctx) {
  return weir_rule_view(ctx, weir_shape_in(ctx, 0));
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_grad_add(ctx, 0, weir_grad_dy(ctx, 0));
  return WEIR_OK;
}

const weir_op_def weir_op_identity = {
    .name = "identity",
    .summary = "The input itself.",
    .doc = "Copies nothing; used to give a value a name or a device.",
    .example = "identity(x)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES}},
    .flags = WEIR_OP_VIEW | WEIR_OP_ROWS,
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_none};
