/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_GPU_MOVE_MOVE_H_
#define KERNELS_GPU_MOVE_MOVE_H_

#include "kernels/cuda/move.h"
#include "kernels/gpu/gpu.h"
#include "kernels/gpu/move/walk.h"

/* Copies of elements from places with strides to places with strides: planned
 * once, by the strides alone, and run with any two addresses.
 *
 *   weir_gpu_view v = {.size = 4};
 *   weir_gpu_view_add(&v, rows, 1, cols);     a transpose: dimension, x's
 *   weir_gpu_view_add(&v, cols, rows, 1);     stride, y's stride
 *   weir_gpu_move_plan(&v, &move);
 *   s = weir_gpu_move_run(args, &move, y, x);
 *
 * Both addresses are those of operands or of memory aligned like them, at least
 * 16 bytes: elements that lie together are moved by up to 16 bytes at a time.
 */

typedef struct weir_gpu_view {
  size_t size; /* of an element: 1, 4, 8 */
  int32_t rank;
  int64_t dims[WEIR_WALK_RANK];
  int64_t src[WEIR_WALK_RANK], dst[WEIR_WALK_RANK]; /* in elements */
  int64_t src_at, dst_at; /* the first element, from the addresses on */
} weir_gpu_view;

typedef struct weir_gpu_move {
  enum { WEIR_MOVE_COPY, WEIR_MOVE_BODY } kind;
  weir_gpu_body body;
  uint32_t blocks;
  size_t bytes;           /* of a copy */
  int64_t src_at, dst_at; /* in bytes */
  weir_move_args args;
} weir_gpu_move;

/* Adds an inner dimension, joined with the last one where both operands walk
 * the two as one. At most WEIR_WALK_RANK dimensions. */
void weir_gpu_view_add(weir_gpu_view *v, int64_t dim, int64_t src, int64_t dst);

/* Chooses how: the device's own copy, tiles, or elements. */
void weir_gpu_move_plan(const weir_gpu_view *v, weir_gpu_move *out);

/* Puts the copy from |src| to |dst|, which do not overlap, into the queue. */
weir_status weir_gpu_move_run(const weir_args *args, const weir_gpu_move *move,
                              void *dst, const void *src);

/* Of three bodies for elements of 1, 4 and 8 bytes, one after the other in
 * their list, that for |size|. */
weir_gpu_body weir_gpu_sized(weir_gpu_body first, size_t size);

#endif
