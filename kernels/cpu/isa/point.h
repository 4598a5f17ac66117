/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_ISA_POINT_H_
#define KERNELS_CPU_ISA_POINT_H_

#include <stdint.h>

/* Convolution with windows of one pixel on values in blocks of channels
 * ([c / LANES][pixels][LANES]): a product of pixels by channels. */

enum { WEIR_POINT_VECTORS = 2 }; /* of output channels in a panel, at most */

/* Some pixels of one image, a panel of output channels. */
typedef struct weir_point {
  const float *x;  /* its first pixel */
  int64_t x_block; /* elements from a block of channels of x to the next */
  /* For each channel of x the panel's channels, |vectors| vectors. */
  const float *w;
  const float *bias; /* of the panel's channels, or NULL */
  float *y;
  int64_t y_block;
  int64_t channels; /* of x; lanes past them are not read */
  int64_t pixels;   /* > 0 */
  int vectors;      /* 1 or 2 */
} weir_point;

typedef struct weir_point_table {
  int64_t pixels; /* of a tile */
  /* An element is the bias and then one chain of multiply-adds in the order of
   * x's channels: its bits depend on nothing else. */
  void (*run)(const weir_point *p);
} weir_point_table;

#endif
