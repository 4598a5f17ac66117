/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/reduce/reduce.h"

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref dy = weir_g_keepdims(ctx, weir_grad_dy(ctx, 0));
  weir_grad_add(ctx, 0, weir_g_expand_like(ctx, dy, weir_grad_in(ctx, 0)));
  return WEIR_OK;
}

const weir_op_def weir_op_reduce_sum = {
    .name = "reduce_sum",
    .aliases = {"sum"},
    .summary = "Sum of x over some or all axes.",
    .doc =
        "The sum of no elements is 0. Integers wrap in their own dtype, where "
        "NumPy widens: the u8 sum of 200 and 100 is 44; cast first. The order "
        "of additions follows from the shape alone.",
    .example = "sum(x, axis=[0, 1])",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_NUMBERS}},
    .attrs = {{"axis", WEIR_ATTR_INTS, "none", "axes to sum over; none: all"},
              {"keepdims", WEIR_ATTR_BOOL, "false",
               "keep the summed axes with size 1"}},
    .refuses = {"an axis outside [-rank, rank)", "an axis given twice", "bool"},
    .shape = weir_rule_reduce,
    .grad = grad,
    .cost = weir_cost_reduce};
