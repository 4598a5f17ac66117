/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/grads.h"
#include "ops/nn/window.h"

static weir_status grad(weir_grad_ctx *ctx) {
  static const char *const names[] = {
      "kernel", "stride", "pad", "padding", "count_include_pad", NULL};
  weir_ref x = weir_grad_in(ctx, 0), dy = weir_grad_dy(ctx, 0);
  weir_grad_add(ctx, 0,
                weir_g_like_shaped(ctx, "avg_pool_grad", 1, &dy, x, names));
  return WEIR_OK;
}

const weir_op_def weir_op_avg_pool = {
    .name = "avg_pool",
    .aliases = {"average_pool"},
    .summary = "Mean of each window of an image.",
    .doc =
        "h' = (h + top + bottom - kh) // stride + 1. The border counts as "
        "zeros with count_include_pad, else not at all." WEIR_PADDING_DOC,
    .example = "avg_pool(x, 2)",
    .attrs = {WEIR_POOL_ATTRS, WEIR_POOL_COUNT_PAD, WEIR_PADDING_ATTR},
    .refuses = {WEIR_POOL_REFUSES, "integers"},
    .grad = grad,
    WEIR_POOL_FIELDS};
