/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_PRODUCT_H_
#define KERNELS_CUDA_PRODUCT_H_

#include "kernels/cuda/body.h"

/* Products of matrices of integers, which the library of products has not; sums
 * wrap. y is |batches| matrices of m x n, one after the other, each of a, m x
 * k, and b, k x n, by strides in elements; |batch_strides| are those of a and
 * b from one index of |batch_dims| to the next. Grids: any number of blocks in
 * x. No operand is y. */
enum { WEIR_PRODUCT_TILE = 16 }; /* outputs of a block, along each side */

typedef struct weir_product_args {
  void *y;
  const void *a, *b;
  int64_t m, n, k, batches;
  int64_t a_row, a_k, b_k, b_column;
  int64_t batch_dims[WEIR_BODY_RANK];
  int64_t batch_strides[2][WEIR_BODY_RANK];
  int32_t batch_rank;
} weir_product_args;

#endif
