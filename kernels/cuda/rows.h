/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_ROWS_H_
#define KERNELS_CUDA_ROWS_H_

#include "kernels/cuda/body.h"

/* Arguments of the bodies of rows.cu: |rows| rows of |cols| f32 that lie
 * together. y has one element a row, for softmax those of x, and may then be
 * x. Grids: any number of blocks in x; a block does whole rows.
 * Of no elements: sum 0, mean NaN, max -infinity. */
typedef struct weir_rows_args {
  float *y;
  const float *x;
  int64_t rows, cols;
} weir_rows_args;

#endif
