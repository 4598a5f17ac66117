/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_CONV_GEMM_H_
#define KERNELS_CPU_CONV_GEMM_H_

#include "kernels/cpu/conv/conv_dims.h"
#include "kernels/cpu/ew/ew.h"
#include "kernels/cpu/isa/gemm.h"

/* Convolution as a product: weights [oc][k] times pixels [k][oh * ow], k = c *
 * kh * kw. A block is a band of output rows of one image and channel group, or
 * of a part of its output channels where blocks would be few otherwise:
 * the input rows it needs are copied with their padding, then, slice by slice
 * of k, into panels of pixels, and the register tiles of gemm.h do the rest.
 * 1 x 1 windows read x in place. All edges follow from the shape. */
typedef struct weir_conv_gemm {
  const weir_gemm_table *isa;
  weir_conv_dims dims;
  int32_t x_io, w_io, bias_io, y_io; /* operands of the run; bias -1: none */
  int64_t kc;          /* depth of a slice of the sum over the taps */
  int64_t band, bands; /* output rows of a block; bands of an image */
  int64_t part, parts; /* output channels of a block; parts of a group */
  int64_t hp, wp;      /* copied rows of a channel, their length */
  /* x is read in place: the first of several tiles makes a panel of it, or
   * tiles go by rows of y. */
  bool copies, by_rows;
  size_t copy_bytes, panel_bytes; /* of a worker's scratch, in this order */
  bool small;                     /* not worth a second thread */
  const weir_ew *epilogue;        /* or NULL */
} weir_conv_gemm;

#endif
