/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/nn/window.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape x, y, same;
  WEIR_TRY(weir_rule_window_shape(ctx, &x));
  WEIR_TRY(weir_rule_pool_shape(ctx, &x, &y));
  WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, 0), "dy", &y,
                          "avg_pool's output", &same));
  return weir_shape_set(ctx, 0, &x);
}

/* Linear: the gradient is the op that this one is the gradient of. */
static weir_status grad(weir_grad_ctx *ctx) {
  static const char *const names[] = {
      "kernel", "stride", "pad", "padding", "count_include_pad", NULL};
  weir_ref in[] = {weir_grad_dy(ctx, 0)};
  weir_grad_add(ctx, 0, weir_g_like(ctx, "avg_pool", 1, in, names));
  return WEIR_OK;
}

const weir_op_def weir_op_avg_pool_grad = {
    .name = "avg_pool_grad",
    .summary = "Gradient of avg_pool: dy spread over its window.",
    .example = "avg_pool_grad(dy, shape=[1, 1, 4, 4], kernel=2)",
    .inputs = {{"dy", "T", "[n, c, h', w']"}},
    .outputs = {{"dx", "T", "[n, c, h, w]"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"shape", WEIR_ATTR_INTS, NULL, "shape of the op's input"},
              WEIR_POOL_ATTRS,
              WEIR_POOL_COUNT_PAD,
              WEIR_PADDING_ATTR},
    .refuses = {WEIR_POOL_REFUSES, "a dy of another shape than avg_pool gives",
                "integers"},
    .flags = WEIR_OP_ANCHOR,
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_unary};
