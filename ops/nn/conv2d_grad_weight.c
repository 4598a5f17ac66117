/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/nn/window.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape wanted;
  WEIR_TRY(weir_rule_rank(ctx, 0, "x", 4, 4));
  WEIR_TRY(weir_rule_window_shape(ctx, &wanted));
  WEIR_TRY(weir_rule_conv_grad(ctx, weir_shape_in(ctx, 0), &wanted));
  weir_shape bias = weir_shape_scalar();
  weir_shape_push(&bias, wanted.dims[0]);
  WEIR_TRY(weir_shape_set(ctx, 1, &bias));
  return weir_shape_set(ctx, 0, &wanted);
}

static void cost(const weir_call *call, weir_cost *out) {
  weir_cost_conv(call, &call->out[0], &call->in[1], out);
}

/* Linear in each input: with g the gradient of dw, that of dy is conv2d(x, g),
 * that of x the images' gradient for filters g. That of db goes to all of dy's
 * pixels. */
static weir_status grad(weir_grad_ctx *ctx) {
  static const char *const names[] = {"stride",   "pad",    "padding",
                                      "dilation", "groups", NULL};
  weir_ref x = weir_grad_in(ctx, 0), dy = weir_grad_in(ctx, 1);
  weir_ref g = weir_grad_dy(ctx, 0), gb = weir_grad_dy(ctx, 1);
  weir_ref images[] = {x, g}, both[] = {g, dy};
  if (g != WEIR_NO_VALUE && weir_grad_wanted(ctx, 1))
    weir_grad_add(ctx, 1, weir_g_like(ctx, "conv2d", 2, images, names));
  if (g != WEIR_NO_VALUE && weir_grad_wanted(ctx, 0))
    weir_grad_add(
        ctx, 0,
        weir_g_like_shaped(ctx, "conv2d_grad_input", 2, both, x, names));
  if (gb == WEIR_NO_VALUE || !weir_grad_wanted(ctx, 1)) return WEIR_OK;
  weir_dim column[] = {weir_grad_shape(ctx, gb)->dims[0], weir_dim_of(1),
                       weir_dim_of(1)};
  gb = weir_g1a(ctx, "reshape", gb, "shape", weir_attr_dims(3, column));
  weir_grad_add(ctx, 1, weir_g_expand_like(ctx, gb, dy));
  return WEIR_OK;
}

const weir_op_def weir_op_conv2d_grad_weight = {
    .name = "conv2d_grad_weight",
    .summary = "Gradient of conv2d with respect to the filters, and the bias.",
    .doc = "db is the sum of dy over images and pixels.",
    .source = "Dumoulin and Visin, arXiv:1603.07285",
    .example = "conv2d_grad_weight(x, dy, shape=[1, 1, 3, 3])",
    .inputs = {{"x", "T", "[n, c, h, w]"}, {"dy", "T", "[n, o, h', w']"}},
    .outputs = {{"dw", "T", "[o, c / groups, kh, kw]"},
                {"db", "T", "[o]", .optional = true}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {WEIR_CONV_GRAD_ATTRS("filters")},
    .refuses = {WEIR_CONV_GRAD_REFUSES},
    .shape = shape,
    .grad = grad,
    .cost = cost};
