/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_ROWS_H_
#define KERNELS_CUDA_ROWS_H_

#include "kernels/cuda/body.h"

/* Arguments of the bodies of rows.cu: |rows| rows of |cols| f32 that lie
 * together. y has one element a row, for softmax and its logarithm those of x,
 * and may then be x. Grids: any number of blocks in x; a block does whole rows.
 * Of no elements: sum 0, mean NaN, max and min an infinity.
 * Short rows go one to a warp, which suits those of up to a block's threads.
 * Long rows that are joined may be cut: then y has |slices| elements a row, of
 * |slice| elements each and the last of the rest, and is itself joined by
 * another launch. */
typedef struct weir_rows_args {
  float *y;
  const float *x;
  int64_t rows, cols;
  int64_t slices, slice; /* 0: rows are not cut */
  int64_t count;         /* that a mean divides by; 0: |cols| */
  int32_t by_warps;      /* not with slices */
} weir_rows_args;

#endif
