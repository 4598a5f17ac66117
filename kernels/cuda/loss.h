/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_LOSS_H_
#define KERNELS_CUDA_LOSS_H_

#include "kernels/cuda/body.h"

/* Arguments of the bodies of loss.cu, for f32 and f64. Grids: any number of
 * blocks in x, if no other is given. */

/* Rows longer than this are a block's, others a warp's. */
enum { WEIR_LOSS_WIDE = 2048 };

/* Labels by number, |label_bytes| each: 1 (u8), 4 (i32), 8 (i64). */
typedef struct weir_labels {
  const void *data;
  int32_t bytes;
} weir_labels;

/* sparse_xent: y[rows], the loss of each row of x, times its weight and its
 * label's, if these are not NULL. sparse_xent_grad: y[rows][cols], which
 * may be x, of dy[rows]. A row whose label is out of range gets 0. */
typedef struct weir_sparse_xent_args {
  void *y;
  const void *x, *weight, *class_weight, *dy;
  weir_labels labels;
  int64_t rows, cols;
} weir_sparse_xent_args;

/* dense_xent, dense_xent_grad: the same, with shares of all classes in
 * place of a label; y may be x or shares too. */
typedef struct weir_dense_xent_args {
  void *y;
  const void *x, *shares, *dy;
  int64_t rows, cols;
} weir_dense_xent_args;

/* check_labels: leaves the first label outside of 0 .. classes - 1 as the fault
 * of |instr|, if there is none yet. Grid: 1 block. */
typedef struct weir_check_labels_args {
  weir_body_fault *fault;
  weir_labels labels;
  int64_t n, classes;
  uint64_t instr;
} weir_check_labels_args;

typedef enum weir_distance_op {
  WEIR_DISTANCE_SQUARE,
  WEIR_DISTANCE_BENT, /* a parabola up to |delta|, then its tangent */
  WEIR_DISTANCE_XENT  /* of sigmoid(a), for a share b */
} weir_distance_op;

/* distance: y[n], which may be a or b. distance_sums: |parts|, a sum
 * for each block. distance_end: y[0], the sum of |count| parts, over |n|
 * with |is_mean|. Grid of the last: 1 block. */
typedef struct weir_distance_args {
  void *y;
  double *parts;
  const void *a, *b;
  int64_t n, count;
  double delta;
  int32_t op; /* weir_distance_op */
  int32_t is_mean;
} weir_distance_args;

#endif
