/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_ISA_CONV_H_
#define KERNELS_CPU_ISA_CONV_H_

#include <stdint.h>

/* Direct convolution, f32: the inner loops.
 *
 * Three forms, by where the lanes of a vector lie:
 *   images    16 images, the same pixel of each; any size fills its lanes
 *   width     neighbouring pixels of a row; stride 1
 *   channels  output channels at one pixel
 * Each output is the bias plus the products in the order channel, row, column
 * of the filter, so all forms of one instruction set give the same bits. */

enum { WEIR_CONV_OC = 6 }; /* output channels that a call may take at once */

/* One row of outputs. All strides in elements. */
typedef struct weir_conv_row {
  const float *x;    /* the first input element of the row's first window */
  const float *w;    /* packed: [c][kh][kw][oc] */
  const float *bias; /* [oc], or NULL */
  float *y;
  int64_t y_channel; /* from one output channel to the next (images, width) */
  int64_t y_row;     /* width: from the first row to the second */
  int64_t x_channel; /* from one input channel to the next */
  int64_t x_tap_row; /* from one row of the filter to the next */
  int64_t x_tap;     /* from one column of the filter to the next */
  int64_t x_step;    /* from one output pixel's window to the next's */
  int64_t x_row;     /* width: from the first row's window to the second's */
  int32_t channels, kh, kw;
  int32_t oc;    /* images, width: 1 to WEIR_CONV_OC; channels: lanes */
  int32_t count; /* output pixels */
} weir_conv_row;

typedef struct weir_conv_table {
  int32_t images_oc; /* how many output channels go together at best */
  int32_t width_oc;
  /* y[oc][count][16]; x has 16 images per pixel. */
  void (*images)(const weir_conv_row *row);
  /* Two rows of y[oc][2][count rounded up to the lanes]: writes whole vectors
   * and reads as far to the right. */
  void (*width)(const weir_conv_row *row);
  /* y[count][lanes]; w: [c][kh][kw][lanes], bias: [lanes]. */
  void (*channels)(const weir_conv_row *row);
  /* Pooling of k rows, |k| x |k| windows side by side: y[i][depth] from
   * x[r][i k + j][depth]; depth is a multiple of the lanes, or 1. |x_row|: from
   * row to row. Average, or the largest (NaN wins). */
  void (*pool)(float *y, const float *x, int64_t x_row, int32_t k,
               int32_t count, int32_t depth, int average);
} weir_conv_table;

#endif
