/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_CONV_GRAD_H_
#define KERNELS_CPU_CONV_GRAD_H_

#include "kernels/cpu/conv/n16.h"
#include "kernels/cpu/isa/conv_grad.h"
#include "kernels/kernel.h"
#include "ops/nn/window.h"

/* Gradients of conv2d, y = conv2d(x, w), 16 images at a time (isa/conv_grad.h):
 * for batches of 16 and more whose images fit in the caches. x, y and their
 * gradients may be plain or N16; plain ones are converted block by block. All
 * other shapes are left to conv_grad_gemm.c. */
typedef struct weir_conv_grad {
  const weir_isa *isa;
  const weir_conv_grad_table *table;
  weir_window window;
  int64_t n, c, h, w;      /* of x */
  int64_t oc, oh, ow;      /* of y */
  int64_t taps;            /* of one output channel: c * kh * kw */
  int64_t blocks;          /* of 16 images */
  bool x_n16, y_n16;       /* layouts of x or dx, and of dy */
  weir_n16_box box;        /* x with its padding */
  size_t x_bytes, y_bytes; /* of a worker's scratch: blocks of x or dx and dy */
  /* weights only: images are summed in chunks of blocks, chunks in order. */
  int64_t chunk, chunks; /* blocks of a chunk */
  const int32_t *places; /* per tap: where it is in the padded block */
} weir_conv_grad;

/* Images in block |b|. */
static inline int64_t weir_conv_grad_images(const weir_conv_grad *g,
                                            int64_t b) {
  return g->n - b * 16 < 16 ? g->n - b * 16 : 16;
}

#endif
