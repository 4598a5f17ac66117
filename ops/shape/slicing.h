/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_SLICING_H_
#define OPS_SLICING_H_

#include "ops/shape_ctx.h"

/* Shape rules that an op and its gradient share: slice, pad, tile, gather. */

/* The part of one dimension that a slice takes: start, start + step, ... */
typedef struct weir_slice {
  int64_t start, step, length;
} weir_slice;

/* Attributes start, stop, axis and step applied to |x|: |*y| is the result's
 * shape, |slices| (room for WEIR_MAX_RANK) one entry for each dimension whose
 * size is known. W2006, W2007, W2016. */
weir_status weir_rule_slice(weir_shape_ctx *ctx, const weir_shape *x,
                            weir_shape *y, weir_slice *slices);
/* The same for a call whose shapes have passed, |x| of known size: kernels of
 * slice and slice_grad. */
void weir_call_slice(const weir_call *call, int rank, const int64_t *x,
                     weir_slice *slices);

/* Attributes pads and mode applied to |x|. W2001, W2007, W2016. */
weir_status weir_rule_pad(weir_shape_ctx *ctx, const weir_shape *x,
                          weir_shape *y);
/* Attribute repeats applied to |x|. W2001, W2007. */
weir_status weir_rule_tile(weir_shape_ctx *ctx, const weir_shape *x,
                           weir_shape *y);
/* |x| with dimension `axis` replaced by the shape of |indices|. W2003, W2006.
 */
weir_status weir_rule_gather(weir_shape_ctx *ctx, const weir_shape *x,
                             const weir_shape *indices, weir_shape *y);

#endif
