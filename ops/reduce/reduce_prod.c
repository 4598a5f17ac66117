/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/reduce/reduce.h"

static weir_status grad(weir_grad_ctx *ctx) {
  weir_named_attr attrs[] = {{"axis", *weir_grad_attr(ctx, "axis")},
                             {"keepdims", *weir_grad_attr(ctx, "keepdims")},
                             {NULL, {WEIR_ATTR_NONE, 0, {0}}}};
  weir_ref in[] = {weir_grad_in(ctx, 0), weir_grad_dy(ctx, 0)};
  weir_grad_add(ctx, 0, weir_grad_node(ctx, "reduce_prod_grad", 2, in, attrs));
  return WEIR_OK;
}

const weir_op_def weir_op_reduce_prod = {
    .name = "reduce_prod",
    .aliases = {"prod"},
    .summary = "Product of x over some or all axes.",
    .doc = "The product of no elements is 1. Integers wrap on overflow.",
    .example = "prod(x)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_NUMBERS}},
    .attrs = {{"axis", WEIR_ATTR_INTS, "none",
               "axes to multiply along; none: all"},
              {"keepdims", WEIR_ATTR_BOOL, "false",
               "keep those axes with size 1"}},
    .refuses = {"an axis outside [-rank, rank)", "an axis given twice", "bool"},
    .shape = weir_rule_reduce,
    .grad = grad,
    .cost = weir_cost_reduce};
