/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_RESIZE_H_
#define KERNELS_CUDA_RESIZE_H_

#include "kernels/cuda/walk.h"

/* Arguments of the bodies of resize.cu: images of |from| rows and columns, and
 * images of |to|. resize makes the latter, its gradient the former of
 * gradients of the latter; the walk is over the result: images, rows, columns.
 * Sides are at most 2^30. Grids: any number of blocks in x. y is not x. */
typedef struct weir_resize_args {
  void *y;
  const void *x;
  int64_t n; /* elements of y */
  int64_t from[2], to[2];
  double inverse[2]; /* 1 / (2 to) */
  weir_walk walk;
  int32_t nearest; /* not 0: the nearest element, else a mean of four */
} weir_resize_args;

#endif
