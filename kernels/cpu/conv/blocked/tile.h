/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_CONV_BLOCKED_TILE_H_
#define WEIR_KERNELS_CPU_CONV_BLOCKED_TILE_H_

#include <stdint.h>

/* Convolution of values in blocks of channels ([c / LANES][pixels][LANES]). */

/* Some rows of pixels of one image, a panel of output channels. A pixel of y
 * reads x at its own place and |taps| further; pixels side by side lie a vector
 * apart in x and in y. */
typedef struct weir_conv_rows {
  const float *x;  /* of the first pixel */
  int64_t x_block; /* elements from a block of channels of x to the next */
  int64_t x_row;   /* from a row's x to the next row's */
  const int64_t *taps;
  int64_t tap_count;
  /* For each block of channels of x, each tap and each channel of the block the
   * panel's channels: |vectors| vectors. */
  const float *w;
  const float *bias; /* of the panel's channels, or NULL */
  float *y;
  int64_t y_block;
  int64_t channels; /* of x; lanes past them are not read */
  int64_t rows, columns;
  int vectors;      /* of the panel, up to the table's */
  const void *next; /* weights that are wanted next, to be fetched, or NULL */
} weir_conv_rows;

typedef struct weir_conv_tile_table {
  int vectors; /* of output channels in a panel, at most */
  /* An element is the bias and then one chain of multiply-adds in the order of
   * w: its bits depend on nothing else. */
  void (*run)(const weir_conv_rows *r);
} weir_conv_tile_table;

#endif
