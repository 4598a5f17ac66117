/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_REDUCE_H_
#define KERNELS_CUDA_REDUCE_H_

#include "kernels/cuda/walk.h"

/* Arguments of the bodies of reduce.cu, which join elements over any
 * dimensions: each of |outputs| is joined from |total| elements, which are cut
 * into |slices| slices of |slice| (the last may be shorter). y's elements are
 * the slices' results; with one slice they are the outputs. Grids: any number
 * of blocks in x. y is no operand. Of no elements: sum 0, product 1, the
 * largest the least that there is, the smallest the most. */

typedef enum weir_reduce_op {
  WEIR_REDUCE_SUM,
  WEIR_REDUCE_MAX,
  WEIR_REDUCE_MIN,
  WEIR_REDUCE_PROD
} weir_reduce_op;

/* A body does |jobs| jobs, each a part of one slice. The walk over jobs has
 * four places: in x, where the job's outputs begin; the slice's first element;
 * in y; and the first column. Element r of an output is place r of |reduced|
 * further on in x.
 *
 * reduce_rows: a job is the slice of one output; y is [outputs][slices].
 * |lanes| threads do it: 1, 2, 4, ... 32 or all of a block.
 *
 * reduce_columns: |lanes| outputs, of |columns| neighbours in x and in y, or
 * those that are left; y is [slices][outputs]. |lanes|: 1, 2, 4, ... 32. */
typedef struct weir_reduce_args {
  void *y;
  const void *x;
  int64_t jobs, total, slice, columns;
  weir_walk job, reduced;
  int64_t job_strides[4][WEIR_WALK_RANK];
  int64_t reduced_strides[1][WEIR_WALK_RANK];
  int64_t divisor; /* of the results, floats alone; 0: none */
  int32_t op;      /* weir_reduce_op */
  int32_t lanes;
} weir_reduce_args;

/* prod_grad, of f32 and f64: dx[i] is dy of i's output times the product, in
 * f64, of the other elements of that output, |total| places of |joined|. The
 * walk over all |n| elements has the places of the output's first one, and of
 * its dy. */
typedef struct weir_prod_grad_args {
  void *dx;
  const void *x, *dy;
  int64_t n, total;
  weir_walk all, joined;
  int64_t all_strides[2][WEIR_WALK_RANK];
  int64_t joined_strides[1][WEIR_WALK_RANK];
} weir_prod_grad_args;

/* block_squares: y[k] is the sum of squares of stretch k of tensor t's
 * elements, for all tensors. Stretches are those of ops/reduce/norm_blocks.h:
 * they end where the tensors' elements, taken as one vector from element |at|
 * on, reach multiples of |block|. */
enum { WEIR_SQUARES_TENSORS = 64 };

typedef struct weir_squares_args {
  double *y;
  int64_t block;
  int64_t stretches; /* of all tensors */
  const void *x[WEIR_SQUARES_TENSORS];
  int64_t n[WEIR_SQUARES_TENSORS], at[WEIR_SQUARES_TENSORS];
  int64_t first[WEIR_SQUARES_TENSORS]; /* stretch of each tensor */
  int32_t count;
} weir_squares_args;

/* root_of_sum: y[0], an f32 or with |wide| an f64, is the root of the sum of x.
 * One block. */
typedef struct weir_root_args {
  void *y;
  const double *x;
  int64_t n;
  int32_t wide;
} weir_root_args;

#endif
