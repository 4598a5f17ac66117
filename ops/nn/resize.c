/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/nn/resample.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape y;
  WEIR_TRY(weir_rule_rank(ctx, 0, "x", 4, 4));
  WEIR_TRY(weir_rule_resize(ctx, weir_shape_in(ctx, 0), &y));
  return weir_shape_set(ctx, 0, &y);
}

static weir_status grad(weir_grad_ctx *ctx) {
  static const char *const names[] = {"mode", NULL};
  weir_ref x = weir_grad_in(ctx, 0), dy = weir_grad_dy(ctx, 0);
  weir_grad_add(ctx, 0,
                weir_g_like_shaped(ctx, "resize_grad", 1, &dy, x, names));
  return WEIR_OK;
}

const weir_op_def weir_op_resize = {
    .name = "resize",
    .summary = "Images of another height and width.",
    .doc =
        "Element i of h' stands at (i + 1/2) h / h' - 1/2 of h (half_pixel). "
        "Images are not smoothed: before they are made much smaller, avg_pool "
        "takes means.",
    .source = "ONNX, operator Resize, coordinate transformation half_pixel",
    .example = "resize(x, size=[28, 28])",
    .inputs = {{"x", "T", "[n, c, h, w]"}},
    .outputs = {{"y", "T", "[n, c, h', w']"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"size", WEIR_ATTR_INTS, NULL,
               "height and width of y; one number for both"},
              WEIR_RESIZE_MODE},
    .refuses = {"a height or width of 0, of x or of y",
                "a height or width above 2^30", "a size of another length",
                "ranks other than 4", "integers: cast them first"},
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_unary};
