/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_ISA_CONV_GRAD_H_
#define KERNELS_CPU_ISA_CONV_GRAD_H_

#include <stdbool.h>
#include <stdint.h>

/* Gradients of a convolution, f32: the inner loops. A pixel is 16 images side
 * by side; strides count elements. */

enum {
  WEIR_CONV_TAPS = 5,      /* of a tile of weights, at most */
  WEIR_CONV_KW = 5,        /* widest filter that |input| takes */
  WEIR_CONV_CHANNELS_2 = 2 /* input channels that |input| takes at once */
};

/* A tile of weights: |oc| output channels times |taps| places of the filters,
 * summed over all pixels of dy and the first |images| of the 16. */
typedef struct weir_conv_taps {
  const float *x; /* the first window's first element */
  const float *dy;
  float *dw;             /* dw[o * dw_channel + t] */
  const int32_t *places; /* per tap: from a window's first element */
  int64_t dy_channel, dw_channel;
  int64_t x_row, x_step; /* from a window to the next, down and right */
  int32_t oc, taps;
  int32_t rows, columns; /* of dy */
  int32_t images;
  bool add; /* to the values of dw; else they are overwritten */
} weir_conv_taps;

/* A row of dx for |channels| (1 or 2) input channels; stride and dilation 1. */
typedef struct weir_conv_back {
  const float *dy; /* the row that filter row 0 meets, channel 0 */
  const float *w;  /* packed from filter row 0: [oc][kh][kw][channels] */
  float *dx;
  int64_t dy_channel, dy_row; /* dy_row: from filter row to filter row */
  int64_t w_channel, dx_channel;
  int32_t oc, kh, kw, channels; /* kh: rows of the filter that meet dy */
  int32_t columns;              /* of dy */
  int32_t first; /* column of dy that meets dx's first pixel with the last
                    element of a filter row; may be outside */
  int32_t count; /* pixels of the row */
} weir_conv_back;

typedef struct weir_conv_grad_table {
  int32_t oc; /* output channels of a tile of weights */
  void (*weight)(const weir_conv_taps *taps);
  void (*input)(const weir_conv_back *row);
  /* out[c] (+)= the sum of x[c][pixels][16] over pixels and the first |images|
   * of the 16. */
  void (*bias)(float *out, const float *x, int64_t channels, int64_t pixels,
               int32_t images, bool add);
} weir_conv_grad_table;

#endif
