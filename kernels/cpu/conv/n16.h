/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_N16_H_
#define KERNELS_CPU_N16_H_

#include "kernels/cpu/isa/isa.h"

/* Blocks of 16 images: [c][h][w][16 images], one of a value in the N16 layout.
 * The lanes of images that are not there (in the last block) may hold
 * anything: a sum over images must leave them out. */

/* How one block is read as [c][hp][wp][16], the image at (top, left) with zeros
 * around it. */
typedef struct weir_n16_box {
  int64_t c, h, w;
  int64_t hp, wp, top, left;
} weir_n16_box;

/* |count| <= 16 plain images of |image| elements to one block, and back.
 * Lanes past |count| become 0. */
void weir_n16_gather(const weir_isa *isa, float *y, const float *x,
                     int64_t image, int64_t count);
void weir_n16_scatter(const weir_isa *isa, float *y, const float *x,
                      int64_t image, int64_t count);

/* Images [16 b, 16 b + count) of x, N16 or plain, in the form of |box|: in
 * |buffer| (c * hp * wp * 16 floats), or x itself where that has it. */
const float *weir_n16_padded(const weir_isa *isa, const weir_n16_box *box,
                             const float *x, bool x_n16, int64_t b,
                             int64_t count, float *buffer);

#endif
