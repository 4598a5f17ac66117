/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_RESAMPLE_H_
#define OPS_RESAMPLE_H_

#include "ops/shape_ctx.h"

/* Where the elements of a resized image come from: shared by resize, its
 * gradient and their kernels. */

enum { WEIR_RESIZE_SIDE = 1 << 30 }; /* the longest side */

/* One output place along a side: (1 - share) of the input's element |first| and
 * share of |second|. */
typedef struct weir_taps {
  int64_t first, second;
  double share;
} weir_taps;

/* Output place |at| of |out|, from an input of |in| elements; both lie in [1,
 * WEIR_RESIZE_SIDE]. Pixels are areas whose centres are compared (half_pixel):
 * place at stands at (at + 1/2) in / out - 1/2 of the input, and past its first
 * or last centre counts as that. |nearest|: share is 0, and of two centres
 * equally near the lower is taken. */
weir_taps weir_resize_taps(int64_t in, int64_t out, int64_t at, bool nearest);

/* The shape |*out| of |x| [n, c, h, w] with the sides of attribute `size`.
 * W2002, W2003, W2007, W2013. */
weir_status weir_rule_resize(weir_shape_ctx *ctx, const weir_shape *x,
                             weir_shape *out);
/* Fails with W2013 unless the sides of |x|, called |name|, can be resized. */
weir_status weir_rule_resize_sides(weir_shape_ctx *ctx, const weir_shape *x,
                                   const char *name);

/* The attribute of both. */
#define WEIR_RESIZE_MODE                                                     \
  {                                                                          \
    "mode", WEIR_ATTR_STRING, "bilinear",                                    \
        "bilinear: mean of the four nearest elements, by distance; nearest", \
        "bilinear|nearest"                                                   \
  }

#endif
