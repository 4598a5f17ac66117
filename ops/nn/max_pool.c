/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/nn/window.h"

static weir_status grad(weir_grad_ctx *ctx) {
  weir_named_attr attrs[5] = {{"kernel", *weir_grad_attr(ctx, "kernel")},
                              {"pad", *weir_grad_attr(ctx, "pad")}};
  const weir_attr *stride = weir_grad_attr(ctx, "stride");
  if (stride->kind == WEIR_ATTR_INTS)
    attrs[2] = (weir_named_attr){"stride", *stride};
  weir_ref in[] = {weir_grad_in(ctx, 0), weir_grad_dy(ctx, 0)};
  weir_grad_add(ctx, 0, weir_grad_node(ctx, "max_pool_grad", 2, in, attrs));
  return WEIR_OK;
}

/* One operation for each element that a window sees. */
static void cost(const weir_call *call, weir_cost *out) {
  weir_window window;
  weir_call_window(call, &window);
  weir_cost_unary(call, out);
  out->flops = weir_cost_mul(out->flops,
                             weir_cost_mul(window.kernel[0], window.kernel[1]));
}

const weir_op_def weir_op_max_pool = {
    .name = "max_pool",
    .summary = "Largest element in each window of an image.",
    .doc =
        "h' = (h + top + bottom - kh) // stride + 1. The border is never the "
        "largest. NaN if the window holds a NaN.",
    .source = "Riesenhuber and Poggio, Nature Neuroscience 2 (1999) 1019-1025",
    .example = "max_pool(x, 2)",
    .inputs = {{"x", "T", "[n, c, h, w]"}},
    .outputs = {{"y", "T", "[n, c, h', w']"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"kernel", WEIR_ATTR_INTS, NULL,
               "height and width of the window"},
              {"stride", WEIR_ATTR_INTS, "none",
               "step down and right; none: the kernel"},
              {"pad", WEIR_ATTR_INTS, "[0, 0]",
               "border: all sides; or vertical, horizontal; or top, left, "
               "bottom, right"}},
    .refuses = {"a kernel or stride below 1, a negative pad",
                "a pad as large as the kernel",
                "a kernel larger than the padded image",
                "an image of height or width 0", "ranks other than 4",
                "lists of another length than 1, 2 (4)", "integers"},
    .flags = WEIR_OP_WINDOW,
    .shape = weir_rule_pool,
    .grad = grad,
    .cost = cost};
