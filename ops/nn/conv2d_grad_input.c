/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/nn/window.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape wanted;
  WEIR_TRY(weir_rule_rank(ctx, 0, "w", 4, 4));
  WEIR_TRY(weir_rule_window_shape(ctx, &wanted));
  WEIR_TRY(weir_rule_conv_grad(ctx, &wanted, weir_shape_in(ctx, 0)));
  return weir_shape_set(ctx, 0, &wanted);
}

static void cost(const weir_call *call, weir_cost *out) {
  weir_cost_conv(call, &call->in[0], &call->in[1], out);
}

/* Linear in each input: with g the gradient of dx, that of dy is conv2d(g, w),
 * that of w the filters' gradient for images g. */
static weir_status grad(weir_grad_ctx *ctx) {
  static const char *const names[] = {"stride",   "pad",    "padding",
                                      "dilation", "groups", NULL};
  weir_ref w = weir_grad_in(ctx, 0), dy = weir_grad_in(ctx, 1);
  weir_ref g = weir_grad_dy(ctx, 0);
  weir_ref images[] = {g, w}, both[] = {g, dy};
  if (weir_grad_wanted(ctx, 1))
    weir_grad_add(ctx, 1, weir_g_like(ctx, "conv2d", 2, images, names));
  if (weir_grad_wanted(ctx, 0))
    weir_grad_add(
        ctx, 0,
        weir_g_like_shaped(ctx, "conv2d_grad_weight", 2, both, w, names));
  return WEIR_OK;
}

const weir_op_def weir_op_conv2d_grad_input = {
    .name = "conv2d_grad_input",
    .summary = "Gradient of conv2d with respect to the images.",
    .source = "Dumoulin and Visin, arXiv:1603.07285",
    .example = "conv2d_grad_input(w, dy, shape=[1, 1, 4, 4])",
    .inputs = {{"w", "T", "[o, c / groups, kh, kw]"},
               {"dy", "T", "[n, o, h', w']"}},
    .outputs = {{"dx", "T", "[n, c, h, w]"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {WEIR_CONV_GRAD_ATTRS("images")},
    .refuses = {WEIR_CONV_GRAD_REFUSES},
    .shape = shape,
    .grad = grad,
    .cost = cost};
