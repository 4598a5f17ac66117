/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_CONV_POINT_H_
#define WEIR_KERNELS_CPU_CONV_POINT_H_

#include "kernels/cpu/conv/conv_blocked.h"

/* Windows of one pixel in blocks of channels by own tiles (isa/point.h): the
 * computation of conv_blocked.h's pieces, which may be cut by pixels as well.
 * A piece is of some panels of output channels; the last piece may be short. */

/* The filters of piece |k| out of |w|, [oc][c], in panels; those of empty lanes
 * are 0. |packed|: packed_bytes. */
void weir_conv_point_pack(const weir_conv_blocked *p, const float *w, int64_t k,
                          float *packed);

/* A piece of some pixels. x and y are those of the image and the piece, |bias|
 * of the piece; |at|: the first pixel. */
typedef struct weir_conv_point_io {
  const float *x, *packed, *bias;
  float *y;
  int64_t at, pixels, vectors; /* vectors: of output channels */
} weir_conv_point_io;

void weir_conv_point_run(const weir_conv_blocked *p,
                         const weir_conv_point_io *io);

#endif
