/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/nn/window.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape y, same;
  WEIR_TRY(weir_rule_rank(ctx, 0, "x", 4, 4));
  WEIR_TRY(weir_rule_pool_shape(ctx, weir_shape_in(ctx, 0), &y));
  WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, 1), "dy", &y,
                          "max_pool's output", &same));
  return weir_rule_unary(ctx);
}

const weir_op_def weir_op_max_pool_grad = {
    .name = "max_pool_grad",
    .summary =
        "Gradient of max_pool: dy added to the largest element of its window.",
    .doc = "Of several equal ones the first, in rows.",
    .example = "max_pool_grad(x, dy, kernel=2)",
    .inputs = {{"x", "T", "[n, c, h, w]"}, {"dy", "T", "[n, c, h', w']"}},
    .outputs = {{"dx", "T", "[n, c, h, w]"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {WEIR_POOL_ATTRS, WEIR_PADDING_ATTR},
    .refuses = {WEIR_POOL_REFUSES, "a dy of another shape than max_pool gives",
                "integers"},
    .flags = WEIR_OP_ANCHOR,
    .shape = shape,
    .cost = weir_cost_reduce};
