/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/nn/window.h"

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0), dy = weir_grad_dy(ctx, 0);
  weir_named_attr attrs[6] = {
      {"shape", weir_attr_shape(weir_grad_shape(ctx, x))},
      {"kernel", *weir_grad_attr(ctx, "kernel")},
      {"pad", *weir_grad_attr(ctx, "pad")},
      {"count_include_pad", *weir_grad_attr(ctx, "count_include_pad")}};
  const weir_attr *stride = weir_grad_attr(ctx, "stride");
  if (stride->kind == WEIR_ATTR_INTS)
    attrs[4] = (weir_named_attr){"stride", *stride};
  weir_grad_add(ctx, 0, weir_grad_node(ctx, "avg_pool_grad", 1, &dy, attrs));
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

const weir_op_def weir_op_avg_pool = {
    .name = "avg_pool",
    .aliases = {"average_pool"},
    .summary = "Mean of each window of an image.",
    .doc =
        "h' = (h + top + bottom - kh) // stride + 1. The border counts as "
        "zeros with count_include_pad, else not at all.",
    .example = "avg_pool(x, 2)",
    .inputs = {{"x", "T", "[n, c, h, w]"}},
    .outputs = {{"y", "T", "[n, c, h', w']"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"kernel", WEIR_ATTR_INTS, NULL,
               "height and width of the window"},
              {"stride", WEIR_ATTR_INTS, "none",
               "step down and right; none: the kernel"},
              {"pad", WEIR_ATTR_INTS, "[0, 0]",
               "border: all sides; or vertical, horizontal; or top, left, "
               "bottom, right"},
              {"count_include_pad", WEIR_ATTR_BOOL, "false",
               "divide by the kernel size also where the window reaches over "
               "the edge"}},
    .refuses = {"a kernel or stride below 1, a negative pad",
                "a pad as large as the kernel",
                "a kernel larger than the padded image",
                "an image of height or width 0", "ranks other than 4",
                "lists of another length than 1, 2 (4)", "integers"},
    .flags = WEIR_OP_WINDOW,
    .shape = weir_rule_pool,
    .grad = grad,
    .cost = cost};
