/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/shape/slicing.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape y;
  WEIR_TRY(weir_rule_tile(ctx, weir_shape_in(ctx, 0), &y));
  return weir_shape_set(ctx, 0, &y);
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0), dy = weir_grad_dy(ctx, 0);
  weir_named_attr attrs[] = {
      {"shape", weir_attr_shape(weir_grad_shape(ctx, x))},
      {"repeats", *weir_grad_attr(ctx, "repeats")},
      {NULL, {WEIR_ATTR_NONE, 0, {0}}}};
  weir_grad_add(ctx, 0, weir_grad_node(ctx, "tile_grad", 1, &dy, attrs));
  return WEIR_OK;
}

const weir_op_def weir_op_tile = {
    .name = "tile",
    .summary = "x repeated along each dimension.",
    .example = "tile(x, repeats=[2, 3])",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES}},
    .attrs = {{"repeats", WEIR_ATTR_INTS, NULL,
               "how often along each dimension"}},
    .refuses = {"a list of another length than the rank", "negative repeats",
                "a result too large"},
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_bytes};
