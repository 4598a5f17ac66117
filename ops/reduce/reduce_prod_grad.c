/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/reduce/reduce.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape y, same;
  WEIR_TRY(weir_rule_reduced(ctx, weir_shape_in(ctx, 0), &y));
  WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, 1), "dy", &y, "the product",
                          &same));
  return weir_rule_unary(ctx);
}

const weir_op_def weir_op_reduce_prod_grad = {
    .name = "reduce_prod_grad",
    .summary =
        "Gradient of reduce_prod: dy times the product of the other elements.",
    .doc = "Right for zeros too: with one zero only its own gradient is not 0.",
    .example = "reduce_prod_grad(x, dy)",
    .inputs = {{"x", "T"}, {"dy", "T"}},
    .outputs = {{"dx", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"axis", WEIR_ATTR_INTS, "none",
               "axes to multiply along; none: all"},
              {"keepdims", WEIR_ATTR_BOOL, "false",
               "keep those axes with size 1"}},
    .refuses = {"an axis outside [-rank, rank)", "an axis given twice",
                "a dy of another shape than reduce_prod gives", "integers",
                "bool"},
    .shape = shape,
    .cost = weir_cost_reduce};
