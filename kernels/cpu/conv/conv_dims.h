/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_CONV_DIMS_H_
#define KERNELS_CPU_CONV_DIMS_H_

#include "kernels/kernel.h"
#include "ops/nn/window.h"

/* The sizes of y = conv2d(x, w) that kernels by products of matrices share,
 * forward and for both gradients. */
typedef struct weir_conv_dims {
  weir_dtype dtype;
  int64_t size; /* bytes of an element */
  weir_window window;
  int64_t n, groups, c, oc; /* channels of one group */
  int64_t h, w, oh, ow;
  int64_t taps;  /* of a filter: c * kh * kw */
  bool in_place; /* 1 x 1, step 1, no border: x is the matrix of columns */
} weir_conv_dims;

/* Rows (side 0) or columns (1) from the first to the last that a window sees.
 */
static inline int64_t weir_conv_reach(const weir_window *v, int side) {
  return (v->kernel[side] - 1) * v->dilation[side] + 1;
}

/* Reads them from the operands of |call| that are x, w and y, or their
 * gradients. */
weir_conv_dims weir_conv_dims_of(const weir_call *call, const weir_operand *x,
                                 const weir_operand *w, const weir_operand *y);

#endif
