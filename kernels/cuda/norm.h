/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_NORM_H_
#define KERNELS_CUDA_NORM_H_

#include "kernels/cuda/body.h"
#include "kernels/cuda/divide.h"

/* Arguments of the bodies of norm.cu, for f32 and f64, of which only the former
 * is kept. Grids: any number of blocks in x. */

/* Of channels, dimension 1 of |n| elements, fewer than 2^31; each has |each| of
 * them, in planes of |inner|, and falls into |slices| slices of |slice|
 * elements, the last one of the rest.
 *
 * channel_moments: parts[channel][slice][2], mean and sum of the squares of
 * the differences from it. channel_moments_end: mean and var of parts.
 * channel_sums: parts of dy's sum and, with x, of that of dy z, where z is
 * x normalised by mean and var. channel_sums_end: |sum| of the one and, if
 * it is not NULL, |spread| of the other. batch_norm: y of x; may be x.
 * batch_norm_grad: y, the gradient of x, of x, mean, var, scale, dy, sum
 * and spread; may be x or dy. */
typedef struct weir_channels_args {
  void *y, *mean, *var, *sum, *spread;
  const void *x, *dy, *scale, *bias;
  double *parts;
  int64_t n, each, slice;
  weir_divisor inner, channels, slices;
  int32_t channel_count, slice_count;
  double epsilon;
} weir_channels_args;

/* Rows longer than this are a block's, others a warp's; of rows to be kept a
 * thread keeps so many fours. */
enum {
  WEIR_NORM_WIDE = 1024,
  WEIR_NORM_FOURS = 8,
  WEIR_NORM_KEPT = 4 * WEIR_NORM_FOURS * WEIR_BODY_THREADS
};

/* layer_norm: y of rows of x, times scale, and bias added, which are as
 * long as a row. layer_norm_kept_f32: the same of rows of at most
 * WEIR_NORM_KEPT, each read once. layer_norm_grad: y, the gradient of x, of
 * x, scale and dy. y may be x, and dy. */
typedef struct weir_layer_norm_args {
  void *y;
  const void *x, *scale, *bias, *dy;
  int64_t rows, cols;
  double epsilon;
  int32_t wide; /* of layer_norm_kept_f32: |cols| is a multiple of 4, and x, y,
                   scale and bias are aligned to 16 bytes */
} weir_layer_norm_args;

#endif
