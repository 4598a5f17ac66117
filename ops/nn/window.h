/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_WINDOW_H_
#define OPS_WINDOW_H_

#include "ops/cost.h"
#include "ops/shape_ctx.h"

/* The window of a convolution or pooling over [n, c, h, w]. Index 0 is the
 * height, 1 the width; |pad| is top, left, bottom, right. With |same| the pads
 * follow from the input's size, so that there are ceil(size / stride) places:
 * half of what is missing before the image, the odd one after it. */
typedef struct weir_window {
  int64_t kernel[2], stride[2], dilation[2];
  int64_t pad[4];
  int64_t groups;
  bool same;
} weir_window;

/* Reads the attributes kernel, stride, pad, padding, dilation and groups, those
 * that the op has, and checks all but the kernel against the input: W2013,
 * W2007. Pads that follow from the input are 0 until weir_call_window.
 * Without an attribute `kernel` the kernel is 1 x 1 for the caller to set. */
weir_status weir_rule_window(weir_shape_ctx *ctx, weir_window *out);
/* The same for a call whose shapes have passed; for kernels. A convolution's
 * kernel is that of operand `w` or, in conv2d_grad_weight, of the attribute
 * `shape`. */
void weir_call_window(const weir_call *call, weir_window *out);

/* Pooling's output for input shape |x|. Checks that pads are smaller than the
 * kernel: W2013. */
weir_status weir_rule_pool_shape(weir_shape_ctx *ctx, const weir_shape *x,
                                 weir_shape *out);
/* Shape rule of poolings: x[n, c, h, w]. */
weir_status weir_rule_pool(weir_shape_ctx *ctx);
/* Cost of poolings: an operation for each element that a window sees. */
void weir_cost_pool(const weir_call *call, weir_cost *out);

/* The attribute that finds the pads. */
#define WEIR_PADDING_ATTR                                                     \
  {                                                                           \
    "padding", WEIR_ATTR_STRING, "explicit",                                  \
        "explicit: as pad says; same: what h' = ceil(h / stride) needs, the " \
        "odd one below and right",                                            \
        "explicit|same"                                                       \
  }
#define WEIR_PADDING_DOC                                                      \
  " With padding=same h' = ceil(h / stride), as in TensorFlow and in ONNX's " \
  "SAME_UPPER."
#define WEIR_PADDING_REFUSES "a pad beside padding=same"
/* Attributes and refusals of poolings and their gradients. */
#define WEIR_POOL_ATTRS                                                      \
  {"kernel", WEIR_ATTR_INTS, NULL, "height and width of the window"},        \
      {"stride", WEIR_ATTR_INTS, "none",                                     \
       "step down and right; none: the kernel"},                             \
  {                                                                          \
    "pad", WEIR_ATTR_INTS, "[0, 0]",                                         \
        "border: all sides; or vertical, horizontal; or top, left, bottom, " \
        "right"                                                              \
  }
#define WEIR_POOL_COUNT_PAD                                             \
  {                                                                     \
    "count_include_pad", WEIR_ATTR_BOOL, "false",                       \
        "divide by the kernel size also where the window reaches over " \
        "the edge"                                                      \
  }
#define WEIR_POOL_REFUSES                                                      \
  "a kernel or stride below 1, a negative pad",                                \
      "a pad as large as the kernel", "a kernel larger than the padded image", \
      "an image of height or width 0", "ranks other than 4",                   \
      "lists of another length than 1, 2 (4)", WEIR_PADDING_REFUSES
/* Ports and rules of poolings. */
#define WEIR_POOL_FIELDS                                                    \
  .inputs = {{"x", "T", "[n, c, h, w]"}},                                   \
  .outputs = {{"y", "T", "[n, c, h', w']"}}, .types = {{"T", WEIR_FLOATS}}, \
  .flags = WEIR_OP_WINDOW, .shape = weir_rule_pool, .cost = weir_cost_pool

/* A convolution's output for input |x| and weights |w|, both rank 4 or
 * unknown; |window| gets the kernel. W2010, W2013. */
weir_status weir_rule_conv_shape(weir_shape_ctx *ctx, const weir_shape *x,
                                 const weir_shape *w, weir_window *window,
                                 weir_shape *out);

/* The attribute `shape` of a gradient by a window: the shape wanted, of rank 4.
 * W2002, W2003, W2004. */
weir_status weir_rule_window_shape(weir_shape_ctx *ctx, weir_shape *out);
/* Checks that input 1, dy, has the shape of the convolution of |x| and |w|,
 * by the window of the attributes. W2010, W2013. */
weir_status weir_rule_conv_grad(weir_shape_ctx *ctx, const weir_shape *x,
                                const weir_shape *w);
/* Cost of a convolution or a gradient of it: two operations for each element
 * of |y|, its output, and each of a filter of |w|. */
void weir_cost_conv(const weir_call *call, const weir_operand *w,
                    const weir_operand *y, weir_cost *out);

/* Attributes and refusals of a convolution's gradients. */
#define WEIR_CONV_GRAD_ATTRS(of)                                   \
  {"shape", WEIR_ATTR_INTS, NULL, "shape of the " of},             \
      {"stride", WEIR_ATTR_INTS, "[1, 1]", "the op's stride"},     \
      {"pad", WEIR_ATTR_INTS, "[0, 0]", "the op's pad"},           \
      {"dilation", WEIR_ATTR_INTS, "[1, 1]", "the op's dilation"}, \
      {"groups", WEIR_ATTR_INT, "1", "the op's groups"}, WEIR_PADDING_ATTR
#define WEIR_CONV_GRAD_REFUSES                                              \
  "windows that conv2d refuses", "a dy of another shape than conv2d gives", \
      "ranks other than 4", "integers"

#endif
