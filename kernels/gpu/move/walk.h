/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_GPU_MOVE_WALK_H_
#define KERNELS_GPU_MOVE_WALK_H_

#include "kernels/cuda/walk.h"
#include "kernels/kernel.h"

/* Operands seen by dimensions and strides, for bodies that walk over them. */

/* A walk over |rank| dimensions, of which none is 0; of rank 0: one element. */
void weir_gpu_walk(int32_t rank, const int64_t *dims, weir_walk *out);

/* An operand along one axis: |outer| blocks of |n| rows of |inner| elements. */
typedef struct weir_gpu_lanes {
  int64_t outer, n, inner;
} weir_gpu_lanes;

/* |axis| counted from the front. */
int32_t weir_gpu_axis(int64_t axis, int32_t rank);

/* |axis| as an op has it, in range. */
weir_gpu_lanes weir_gpu_lanes_of(const weir_operand *x, int64_t axis);

/* Row-major strides in elements. */
void weir_gpu_strides(const weir_operand *x, int64_t *strides);

#endif
