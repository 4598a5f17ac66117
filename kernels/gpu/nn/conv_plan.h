/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_GPU_NN_CONV_PLAN_H_
#define KERNELS_GPU_NN_CONV_PLAN_H_

#include "kernels/cuda/conv.h"
#include "kernels/gpu/nn/product.h"

/* What convolutions and their gradients have in common.
 *
 * y = w patches(x), image by image: w is oc x taps, patches taps x places. The
 * patches of some images, a slice, lie in scratch at a time. Then
 *   y = w patches(x); x' = image(w^T y'); w' = sum of y' patches(x)^T
 * where ' is a gradient. A filter of one element, at every element of the
 * image, has the image as its patches; then there is nothing to lay out. */

enum {
  /* A slice's patches; of one image more, if it must be. */
  WEIR_GPU_CONV_SCRATCH_BYTES = 64 << 20
};

/* The operands of a convolution or of a gradient, by their part in it. */
typedef struct weir_gpu_conv_shape {
  const weir_operand *x, *w, *y;
} weir_gpu_conv_shape;

typedef struct weir_gpu_conv {
  weir_conv_args args;   /* all but addresses, patches' strides and images */
  int64_t images, slice; /* of a run, and of a product */
  int64_t taps, places;
  int64_t x_each, y_each;       /* elements of an image */
  bool in_place;                /* the image is its patches */
  weir_gpu_product whole, rest; /* of a whole slice, and of the last one */
  size_t patches_bytes, rows_bytes;
} weir_gpu_conv;

/* Whether bodies can count |call|'s elements. */
bool weir_gpu_conv_fits(const weir_call *call, weir_gpu_conv_shape s,
                        weir_why *why);
/* The same, and an image's patches, which are of one group. */
bool weir_gpu_conv_has_patches(const weir_call *call, weir_gpu_conv_shape s,
                               weir_why *why);

/* All that follows from shapes, but for products; of direct kernels too. With
 * |rows|, a slice has its part of y in rows too. */
void weir_gpu_conv_init(const weir_call *call, weir_gpu_conv_shape s, bool rows,
                        weir_gpu_conv *out);

/* Plans |desc|, a function of how many images it is for, for both kinds of
 * slices, and sets the scratch of |out|: patches, rows, workspace. */
weir_status weir_gpu_conv_plan(weir_gpu_conv *c, weir_prepared *out,
                               weir_gemm_desc (*desc)(const weir_gpu_conv *c,
                                                      int64_t images),
                               weir_error *err);
void weir_gpu_conv_release(void *conv);

/* A slice of a run: its first image, how many, its product, and where scratch
 * has its parts. */
typedef struct weir_gpu_conv_slice {
  int64_t first, images;
  const weir_gpu_product *product;
  float *patches, *rows;
  void *workspace;
} weir_gpu_conv_slice;

/* Runs |run| for each slice of images, first to last. */
weir_status weir_gpu_conv_each_slice(
    const weir_args *args, const weir_gpu_conv *c,
    weir_status (*run)(const weir_args *args, const weir_gpu_conv_slice *s));

/* The alignment that addresses have which lie multiples of these numbers of
 * elements apart. */
uint32_t weir_gpu_conv_align(int64_t a, int64_t b, int64_t c);

#endif
