/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/grads.h"
#include "ops/nn/window.h"

static weir_status grad(weir_grad_ctx *ctx) {
  static const char *const names[] = {"kernel", "stride", "pad", "padding",
                                      NULL};
  weir_ref in[] = {weir_grad_in(ctx, 0), weir_grad_dy(ctx, 0)};
  weir_grad_add(ctx, 0, weir_g_like(ctx, "max_pool_grad", 2, in, names));
  return WEIR_OK;
}

const weir_op_def weir_op_max_pool = {
    .name = "max_pool",
    .summary = "Largest element in each window of an image.",
    .doc =
        "h' = (h + top + bottom - kh) // stride + 1. The border is never the "
        "largest. NaN if the window holds a NaN." WEIR_PADDING_DOC,
    .source = "Riesenhuber and Poggio, Nature Neuroscience 2 (1999) 1019-1025",
    .example = "max_pool(x, 2)",
    .attrs = {WEIR_POOL_ATTRS, WEIR_PADDING_ATTR},
    .refuses = {WEIR_POOL_REFUSES, "integers"},
    .grad = grad,
    WEIR_POOL_FIELDS};
