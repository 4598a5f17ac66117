/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_GPU_ROWS_REDUCE_H_
#define KERNELS_GPU_ROWS_REDUCE_H_

#include "kernels/cuda/reduce.h"
#include "kernels/gpu/gpu.h"
#include "kernels/gpu/move/walk.h"

/* Plans of reductions over any dimensions: one launch, or two where few outputs
 * have so many elements that they are cut into slices. */

/* Dimensions of x, outer ones first, which lie together, with those of them
 * that are joined. None is 0. */
typedef struct weir_gpu_reduced {
  int32_t rank;
  int64_t dims[WEIR_WALK_RANK];
  bool joined[WEIR_WALK_RANK];
} weir_gpu_reduced;

/* Adds an inner dimension; neighbours of one kind become one. */
void weir_gpu_reduced_add(weir_gpu_reduced *r, int64_t dim, bool joined);

typedef struct weir_gpu_reduce {
  weir_gpu_body body[2];
  uint32_t blocks[2];       /* of the second launch: 0, there is none */
  weir_reduce_args args[2]; /* without addresses */
  size_t scratch_bytes;     /* of the first one's results */
} weir_gpu_reduce;

/* |dtype| is f32, f64, i32 or i64. |mean|: results are divided by the number of
 * elements joined; floats. */
void weir_gpu_reduce_plan(const weir_gpu_reduced *r, weir_dtype dtype,
                          weir_reduce_op op, bool mean, weir_gpu_reduce *out);

/* |scratch|: the plan's bytes; may be NULL for none. */
weir_status weir_gpu_reduce_run(const weir_args *args,
                                const weir_gpu_reduce *plan, void *y,
                                const void *x, void *scratch);

#endif
