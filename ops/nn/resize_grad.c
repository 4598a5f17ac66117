/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/nn/resample.h"
#include "ops/nn/window.h"
#include "ops/rules.h"

/* dy has any sides: they are the ones that resize gave. */
static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape x, same;
  WEIR_TRY(weir_rule_rank(ctx, 0, "dy", 4, 4));
  WEIR_TRY(weir_rule_window_shape(ctx, &x));
  const weir_shape *dy = weir_shape_in(ctx, 0);
  WEIR_TRY(weir_rule_resize_sides(ctx, &x, "shape"));
  WEIR_TRY(weir_rule_resize_sides(ctx, dy, "dy"));
  if (dy->rank == 4) {
    weir_shape y = x;
    y.dims[2] = dy->dims[2];
    y.dims[3] = dy->dims[3];
    WEIR_TRY(weir_rule_same(ctx, dy, "dy", &y, "resize's output", &same));
  }
  return weir_shape_set(ctx, 0, &x);
}

/* Linear: the gradient is the op that this one is the gradient of. */
static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref g = weir_grad_dy(ctx, 0);
  const weir_shape *dy = weir_grad_shape(ctx, weir_grad_in(ctx, 0));
  if (dy->rank != 4)
    return weir_grad_fail(ctx, WEIR_W2008, "the rank of dy is not known");
  weir_named_attr attrs[] = {{"size", weir_attr_dims(2, dy->dims + 2)},
                             {"mode", *weir_grad_attr(ctx, "mode")},
                             {NULL, {WEIR_ATTR_NONE, 0, {0}}}};
  weir_grad_add(ctx, 0, weir_grad_node(ctx, "resize", 1, &g, attrs));
  return WEIR_OK;
}

const weir_op_def weir_op_resize_grad = {
    .name = "resize_grad",
    .summary = "Gradient of resize: dy given to the elements it was made of.",
    .example = "resize_grad(dy, shape=[1, 1, 4, 4])",
    .inputs = {{"dy", "T", "[n, c, h', w']"}},
    .outputs = {{"dx", "T", "[n, c, h, w]"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"shape", WEIR_ATTR_INTS, NULL, "shape of the op's input"},
              WEIR_RESIZE_MODE},
    .refuses = {"a dy of other images or channels than shape's",
                "a height or width of 0 or above 2^30", "ranks other than 4",
                "integers"},
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_reduce};
