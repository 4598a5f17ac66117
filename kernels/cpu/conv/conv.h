/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_CONV_H_
#define KERNELS_CPU_CONV_H_

#include "kernels/cpu/isa/conv.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/kernel.h"
#include "ops/nn/window.h"

/* Direct convolution and its followers: bias, unary functions, pooling.
 *
 * A plan is made once per node. Its form says where the lanes of a vector lie
 * (isa/conv.h): 16 images at a time for batches of 16 and more, else the width
 * of a row or the output channels, whichever fills more lanes. A row of outputs
 * goes through all steps while it is in the first cache. With the images form
 * the input, the output or both may be in the N16 layout; else they are
 * converted block by block. Blocks (16 images, or some images) are the units of
 * work, so the bits do not depend on threads. */

typedef enum weir_conv_form {
  WEIR_CONV_IMAGES,
  WEIR_CONV_WIDTH,
  WEIR_CONV_CHANNELS
} weir_conv_form;

enum { WEIR_CONV_STEPS = 8 };

typedef struct weir_conv_step {
  weir_tile_fn fn;
  float p[2];
} weir_conv_step;

typedef struct weir_conv_plan {
  const weir_isa *isa;
  const weir_conv_table *table;
  weir_conv_form form;
  bool x_n16, y_n16;
  bool in_place; /* windows are read from x itself, without a copy */
  int32_t x_io, w_io, bias_io, y_io; /* operands of the run; bias -1: none */
  int64_t n, c, h, w;                /* of x */
  int64_t oc, oh, ow;                /* of the convolution */
  int64_t ph, pw;                    /* of the output, after pooling */
  int64_t hp, wp;                    /* of the padded copy of x */
  int64_t row;                       /* pixels of a computed row, padded */
  weir_window window;
  int32_t pool; /* 1: none */
  bool average;
  int32_t lanes, depth; /* elements of one pixel while computing */
  int32_t step_count;
  weir_conv_step steps[WEIR_CONV_STEPS];
  int64_t oc_tiles, oc_pad; /* oc_pad: of the packed bias */
  int64_t images, blocks;   /* per block; number of blocks */
  size_t packed_floats;     /* weights, then bias */
  const float *packed;      /* NULL: packed in every run, into scratch */
  size_t pad_bytes, row_bytes, out_bytes; /* of a worker's scratch, in order */
} weir_conv_plan;

/* First output channel of tile |t|; tiles differ by one channel at most. */
static inline int64_t weir_conv_tile_start(const weir_conv_plan *plan,
                                           int64_t t) {
  return plan->oc * t / plan->oc_tiles;
}

/* Where the packed bias lies, after the weights. */
static inline size_t weir_conv_bias_at(const weir_conv_plan *plan) {
  size_t bytes = weir_scratch_align((size_t)plan->oc_pad * sizeof(float));
  return plan->packed_floats - bytes / sizeof(float);
}

#endif
