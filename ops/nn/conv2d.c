/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/nn/window.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  const weir_shape *w = weir_shape_in(ctx, 1);
  weir_window window;
  weir_shape y, same;
  WEIR_TRY(weir_rule_rank(ctx, 0, "x", 4, 4));
  WEIR_TRY(weir_rule_rank(ctx, 1, "w", 4, 4));
  WEIR_TRY(weir_rule_window(ctx, &window));
  WEIR_TRY(weir_rule_conv_shape(ctx, weir_shape_in(ctx, 0), w, &window, &y));
  if (weir_rule_has(ctx, 2) && w->rank == 4) {
    weir_shape b = weir_shape_scalar();
    weir_shape_push(&b, w->dims[0]);
    WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, 2), "b", &b,
                            "one number for each output channel", &same));
  }
  return weir_shape_set(ctx, 0, &y);
}

/* conv2d_grad_input and conv2d_grad_weight: the same window and the shape of
 * the wanted gradient. */
static weir_ref grad_of(weir_grad_ctx *ctx, const char *op, weir_ref a,
                        weir_ref dy, weir_ref like) {
  weir_named_attr attrs[] = {
      {"shape", weir_attr_shape(weir_grad_shape(ctx, like))},
      {"stride", *weir_grad_attr(ctx, "stride")},
      {"pad", *weir_grad_attr(ctx, "pad")},
      {"padding", *weir_grad_attr(ctx, "padding")},
      {"dilation", *weir_grad_attr(ctx, "dilation")},
      {"groups", *weir_grad_attr(ctx, "groups")},
      {NULL, {WEIR_ATTR_NONE, 0, {0}}}};
  return weir_grad_node(ctx, op, 2, (weir_ref[]){a, dy}, attrs);
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0), w = weir_grad_in(ctx, 1);
  weir_ref dy = weir_grad_dy(ctx, 0);
  if (weir_grad_wanted(ctx, 0))
    weir_grad_add(ctx, 0, grad_of(ctx, "conv2d_grad_input", w, dy, x));
  bool bias = weir_grad_in_count(ctx) > 2 && weir_grad_wanted(ctx, 2);
  if (weir_grad_wanted(ctx, 1)) {
    weir_ref dw = grad_of(ctx, "conv2d_grad_weight", x, dy, w);
    weir_grad_add(ctx, 1, dw);
    if (bias) weir_grad_add(ctx, 2, weir_grad_next(dw, 1));
  } else if (bias) {
    weir_grad_add(ctx, 2, weir_g_sum(ctx, dy, 3, (int[]){0, 2, 3}, false));
  }
  return WEIR_OK;
}

static void cost(const weir_call *call, weir_cost *out) {
  weir_cost_conv(call, &call->in[1], &call->out[0], out);
}

const weir_op_def weir_op_conv2d = {
    .name = "conv2d",
    .aliases = {"conv"},
    .summary = "Convolution of images with filters (without mirroring them).",
    .doc =
        "h' = (h + top + bottom - dilation (kh - 1) - 1) // stride + 1. "
        "With groups, each of them sees c / groups of the "
        "channels." WEIR_PADDING_DOC,
    .source =
        "LeCun et al., Proceedings of the IEEE 86 (1998) 2278-2324; "
        "Dumoulin and Visin, arXiv:1603.07285",
    .example = "conv2d(x, w, b, stride=2, pad=1)",
    .inputs = {{"x", "T", "[n, c, h, w]"},
               {"w", "T", "[o, c / groups, kh, kw]"},
               {"b", "T", "[o]", .optional = true}},
    .outputs = {{"y", "T", "[n, o, h', w']"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"stride", WEIR_ATTR_INTS, "[1, 1]", "step down and right"},
              {"pad", WEIR_ATTR_INTS, "[0, 0]",
               "zeros around x: all sides; or vertical, horizontal; or top, "
               "left, bottom, right"},
              {"dilation", WEIR_ATTR_INTS, "[1, 1]",
               "distance of the elements a filter takes"},
              {"groups", WEIR_ATTR_INT, "1", "parts the channels fall into"},
              WEIR_PADDING_ATTR},
    .refuses = {"stride, dilation or groups below 1, a negative pad",
                "an empty filter", "a filter larger than the padded image",
                "groups that do not divide the channels",
                "channels that differ from the filters'", "ranks other than 4",
                "lists of another length than 1, 2 (4)",
                "a bias of another length", WEIR_PADDING_REFUSES},
    .flags = WEIR_OP_ANCHOR,
    .shape = shape,
    .grad = grad,
    .cost = cost};
