/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_WINDOW_H_
#define KERNELS_CUDA_WINDOW_H_

#include "kernels/cuda/body.h"
#include "kernels/cuda/divide.h"

/* A window over images, for bodies. Index 0 is the height, 1 the width. All
 * sums of its numbers, the padded image's size too, are below 2^31, and so is
 * the number of elements of each operand: bodies count in 32 bits. */
typedef struct weir_body_window {
  int32_t in[2], out[2]; /* sizes of the image, and places of the window */
  int32_t kernel[2], dilation[2];
  int32_t pad[2], end[2]; /* before; the image's size and the pad after it */
  weir_divisor in_w, in_hw, out_w, out_hw, kernel_w, kernel_hw, stride[2];
} weir_body_window;

#if defined(__cplusplus)

/* The first element of the image under the window at place |at|; may be below
 * 0. */
static __device__ __forceinline__ int32_t
weir_window_from(const weir_body_window &v, int side, int32_t at) {
  return at * (int32_t)v.stride[side].d - v.pad[side];
}

/* Elements of the image under the window at a place: [from, to), without
 * dilation. */
typedef struct weir_window_span {
  int32_t from, to;
} weir_window_span;

static __device__ __forceinline__ weir_window_span
weir_window_span_of(const weir_body_window &v, int side, int32_t at) {
  int32_t from = weir_window_from(v, side, at), to = from + v.kernel[side];
  return {from < 0 ? 0 : from, to < v.in[side] ? to : v.in[side]};
}

/* The places whose windows have element |at| of the image, without dilation. */
static __device__ __forceinline__ weir_window_span
weir_window_places(const weir_body_window &v, int side, int32_t at) {
  int32_t past = at + v.pad[side], first = past - v.kernel[side] + 1;
  int32_t from =
      first <= 0
          ? 0
          : (int32_t)weir_divide((uint32_t)first - 1, v.stride[side]) + 1;
  int32_t to = (int32_t)weir_divide((uint32_t)past, v.stride[side]) + 1;
  return {from, to < v.out[side] ? to : v.out[side]};
}

#endif

#endif
