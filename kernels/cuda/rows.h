/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_ROWS_H_
#define KERNELS_CUDA_ROWS_H_

#include "kernels/cuda/body.h"

/* Arguments of the bodies of rows.cu, softmax and, with |log|, its logarithm of
 * f32 or, by columns alone, of f64. y has x's shape and may be x. Grids: any
 * number of blocks in x.
 *
 * softmax_kept_*: |rows| rows of |cols| that lie together, each by |lanes|
 * threads: 4, 8, 16, 32 or all of a block. A thread keeps the fours that the
 * body's name counts, so |cols| is at most 4 |lanes| times their number.
 * softmax_long: rows of any length, by all threads of a block.
 * softmax_columns: |rows| blocks of |cols| rows of |inner| columns; a block of
 * threads does |lanes| neighbouring columns: 1, 2, 4, ... 32. */
typedef struct weir_softmax_args {
  void *y;
  const void *x;
  int64_t rows, cols, inner;
  int32_t lanes;
  int32_t log;
  int32_t wide; /* each row of x and of y begins at a multiple of 16 bytes */
} weir_softmax_args;

/* Fours of a thread. */
enum { WEIR_SOFTMAX_FEW = 2, WEIR_SOFTMAX_SOME = 8, WEIR_SOFTMAX_MANY = 16 };

#endif
