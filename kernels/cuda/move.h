/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_MOVE_H_
#define KERNELS_CUDA_MOVE_H_

#include "kernels/cuda/walk.h"

/* Arguments of the bodies of move.cu, which put elements elsewhere, by their
 * size alone. Grids: any number of blocks in x. No operand is an output. */

enum { WEIR_TILE = 32 }; /* a tile of transpose has as many rows and columns */

/* move: element i of |n| goes from x + strides[0] to y + strides[1].
 *
 * transpose: |n| tiles. Along one dimension, of |a| elements, x's lie together
 * and y's are |y_stride| apart; along another, of |b|, y's lie together and
 * x's are |x_stride| apart. The walk is over tiles: strides[2] gives their
 * first index along a, strides[3] along b. */
typedef struct weir_move_args {
  void *y;
  const void *x;
  int64_t n;
  weir_walk walk;
  int64_t strides[4][WEIR_WALK_RANK];
  int64_t a, b, y_stride, x_stride;
} weir_move_args;

typedef enum weir_pad_mode {
  WEIR_PAD_CONSTANT,
  WEIR_PAD_EDGE,
  WEIR_PAD_REFLECT
} weir_pad_mode;

/* y, |n| elements of the walk's dimensions, is x with |before| elements more
 * in front of it along each dimension, and any number behind. */
typedef struct weir_pad_args {
  void *y;
  const void *x;
  int64_t n;
  weir_walk walk;
  int64_t before[WEIR_BODY_RANK], dims[WEIR_BODY_RANK];
  int64_t strides[WEIR_BODY_RANK];
  uint64_t value; /* of WEIR_PAD_CONSTANT, in its lowest bytes */
  int32_t mode;   /* weir_pad_mode */
} weir_pad_args;

/* Along one dimension: y [outer, dims[1], inner] gets the sums of all elements
 * of x [outer, from, inner] that pad would take from it. */
typedef struct weir_unpad_args {
  float *y;
  const float *x;
  int64_t n, from, before;
  weir_walk walk; /* outer, y's length, inner */
  int32_t mode;   /* edge or reflect */
} weir_unpad_args;

#endif
