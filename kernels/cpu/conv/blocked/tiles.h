/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_CONV_BLOCKED_TILES_H_
#define WEIR_KERNELS_CPU_CONV_BLOCKED_TILES_H_

#include "kernels/cpu/conv/blocked/blocked.h"

/* blocked.h's pieces by own tiles (tile.h), which may be cut by
 * pixels as well. A piece is of some panels of output channels; the last piece
 * may be short.
 * Windows of more than one pixel, or with a stride, read x out of scratch, with
 * its border around it. There a row with a stride of s lies as s rows, of every
 * s-th pixel each, so that what pixels of y side by side read lies side by side
 * too; what no window reads is left out. */

/* How x with its border lies, and what a pixel reads of it; of |p| the sizes
 * and the window are known. */
void weir_conv_tiles_border(weir_conv_blocked *p);

/* The same where each strip lays out its own x. */
void weir_conv_tiles_by_strip(weir_conv_blocked *p);

/* A vector of channels of x, the first |there| of which are there, with its
 * border to |to|; for a strip the rows that pixels from row |from| of y on
 * read. */
void weir_conv_tiles_turn(const weir_conv_blocked *p, float *to, const float *x,
                          int64_t there, int64_t from);

/* The filters of piece |k| out of |w|, [oc][c][kh][kw], in panels; those of
 * empty lanes are 0. |packed|: packed_bytes; |own|: own_w_bytes of scratch. */
void weir_conv_tiles_pack(const weir_conv_blocked *p, const float *w, int64_t k,
                          float *packed, float *own);

/* Scratch to pack with, in floats. */
int64_t weir_conv_tiles_own(const weir_conv_blocked *p);

/* Some pixels of a panel, whole rows where windows are larger than a pixel. x
 * and y are those of the image and the panel, of the strip if x is; |at|: the
 * first pixel. */
typedef struct weir_conv_tiles_io {
  const float *x, *w, *bias;
  float *y;
  int64_t at, pixels;
  int vectors; /* of output channels */
  bool last;   /* no weights lie behind these */
} weir_conv_tiles_io;

/* Computes them: bias and sums, no followers. */
void weir_conv_tiles_run(const weir_conv_blocked *p,
                         const weir_conv_tiles_io *io);

/* Whether the next panel's weights have room beside a panel's. */
bool weir_conv_tiles_fetch(const weir_conv_blocked *p);

#endif
