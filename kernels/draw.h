/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_DRAW_H_
#define KERNELS_DRAW_H_

#include "kernels/kernel.h"

/* What the ops that make random numbers draw, on any device: y = offset + scale
 * z for each z, which is a uniform number of [0, 1), a normal one, or a normal
 * one of [-2, 2]. Which bits serve which element: kernels/philox.h. */

typedef enum weir_draw_of {
  WEIR_DRAW_UNIFORM,
  WEIR_DRAW_NORMAL,
  WEIR_DRAW_TRUNCATED
} weir_draw_of;

typedef struct weir_draw {
  weir_draw_of of;
  uint64_t key; /* the call's seed and its attribute */
  double offset, scale;
  /* Rounding may not reach it: what is |high| or more becomes |offset|.
   * INFINITY: there is no such bound. */
  double high;
} weir_draw;

/* The key of |call|'s numbers, of dropout too. */
uint64_t weir_draw_key(const weir_call *call);

/* |call| is of such an op. */
weir_draw weir_draw_make(const weir_call *call);

/* The least f32 that is |high| or more. */
float weir_draw_high_f32(const weir_draw *draw);

#endif
