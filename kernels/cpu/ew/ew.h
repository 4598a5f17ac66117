/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_EW_H_
#define KERNELS_CPU_EW_H_

#include "kernels/cpu/isa/isa.h"
#include "kernels/kernel.h"

/* Element-wise programs.
 *
 * A program computes a chain of element-wise calls in one pass: a tile of at
 * most WEIR_EW_TILE elements goes through all steps while it is in the first
 * cache, with intermediate values in scratch memory. A single call is a program
 * of one step. The space is seen as rows: dims collapsed as far as the
 * broadcast patterns of all inputs allow, the last one being the row. Steps
 * are the same tile functions whether fused or not, so fusing changes no bit.
 * The space may lie in the N16 layout, the operands of its shape with it; the
 * lanes of images that are not there are computed too, from anything. In blocks
 * of channels those of channels that are not there are computed and then
 * cleared, as f(0) need not be 0 and a convolution sums over them.
 *
 *   weir_ew_build(group, first, keep_rows, &room, &why)  once
 *   ew = weir_ew_keep(&room, arena)                      a copy of its size
 *   weir_ew_run(ew, args)                                all of it, or
 *   weir_ew_region(ew, io, r0, r1, c0, c1, scratch)      a part of the rows */

enum {
  WEIR_EW_TILE = 1024,
  WEIR_EW_INPUTS = 16,
  WEIR_EW_STEPS = 32,
  WEIR_EW_OUTPUTS = 8,
  WEIR_EW_RATES = 2
};

typedef struct weir_ew_input {
  int32_t io;                     /* which operand of the run */
  uint32_t bytes;                 /* of one element */
  int64_t strides[WEIR_MAX_RANK]; /* of the collapsed dims, in elements */
  int32_t buffer;                 /* to spread rows in, -1: never needed */
} weir_ew_input;

typedef struct weir_ew_step {
  weir_tile_fn fn;
  int16_t from[3]; /* inputs first, then steps */
  int16_t count;
  int32_t io;     /* written to this operand of the run, or -1: scratch */
  int32_t buffer; /* of scratch, -1 */
  uint32_t bytes; /* of one element */
  float p[2];
} weir_ew_step;

/* A learning rate that a run has to look at first. */
typedef struct weir_ew_rate {
  const weir_call *call; /* apply_sgd */
  int32_t io;
} weir_ew_rate;

typedef struct weir_ew {
  int32_t rank; /* of the collapsed dims, at least 2 */
  int64_t dims[WEIR_MAX_RANK + 1];
  int64_t rows, row; /* row: length of the last dim; rows: of all others */
  int32_t in_count, step_count, buffer_count;
  weir_ew_input *in; /* behind this, as many as there are (weir_ew_keep) */
  weir_ew_step *steps;
  int32_t rate_count;
  weir_ew_rate rates[WEIR_EW_RATES];
  int64_t block_rows, block_cols, row_blocks, col_blocks;
  int64_t image, tail;  /* elements of an image in blocks, and where its last
                           block begins if that has empty lanes; else 0 */
  int32_t lanes, there; /* of a block, and of them in use in the last */
  size_t scratch_bytes; /* for one thread */
} weir_ew;

/* A program while it is made, with room for the largest. */
typedef struct weir_ew_room {
  weir_ew ew;
  weir_ew_input in[WEIR_EW_INPUTS];
  weir_ew_step steps[WEIR_EW_STEPS];
} weir_ew_room;

#endif
