/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_GPU_NN_CONV_PLAN_H_
#define KERNELS_GPU_NN_CONV_PLAN_H_

#include "kernels/cuda/conv.h"
#include "kernels/gpu/nn/product.h"

/* What convolutions and their gradients have in common.
 *
 * y = w patches(x), image by image and group by group: w is oc x taps, patches
 * taps x places. The patches of some images, a slice, lie in scratch at a time.
 * Then
 *   y = w patches(x); x' = image(w^T y'); w' = sum of y' patches(x)^T
 * where ' is a gradient. A filter of one element, at every element of the
 * image, has the image as its patches; then there is nothing to lay out.
 *
 * The library has one step from a product to the next. So of images and groups
 * those are its batch that are more, and for each of the others there is a run
 * of the same plan. */

enum {
  /* A slice's patches; of one image more, if it must be. */
  WEIR_GPU_CONV_SCRATCH_BYTES = 64 << 20
};

/* The operands of a convolution or of a gradient, by their part in it. */
typedef struct weir_gpu_conv_shape {
  const weir_operand *x, *w, *y;
} weir_gpu_conv_shape;

typedef struct weir_gpu_conv {
  const weir_call *call;
  weir_conv_args args;   /* all but addresses, patches' strides and images */
  size_t size;           /* of an element */
  int64_t images, slice; /* of a run, and of a product */
  int64_t groups, taps, places;
  int64_t x_each, y_each;       /* elements of an image */
  bool in_place;                /* the image is its patches */
  bool by_image;                /* the library's batch are groups */
  weir_gpu_product whole, rest; /* of a whole slice, and of the last one */
  size_t patches_bytes, rows_bytes;
} weir_gpu_conv;

/* Whether bodies can count |call|'s elements, and an image's patches. */
bool weir_gpu_conv_has_patches(const weir_call *call, weir_gpu_conv_shape s,
                               weir_why *why);

/* Whether a body alone is to do it: |work| |units|, of |of|, are at most
 * |most|, or the groups are thin, or there can be no patches. */
typedef struct weir_gpu_conv_work {
  const char *of, *units;
  int64_t work, most;
} weir_gpu_conv_work;
bool weir_gpu_conv_accepts_direct(const weir_call *call, weir_gpu_conv_shape s,
                                  weir_gpu_conv_work work, weir_why *why);

/* All that follows from shapes, as the state of a kernel without products, or
 * of one that goes on with weir_gpu_conv_plan. With |rows|, a slice has its
 * part of y in rows too. */
weir_status weir_gpu_conv_prepare(const weir_call *call, weir_gpu_conv_shape s,
                                  bool rows, weir_prepared *out,
                                  weir_error *err);
weir_status weir_gpu_conv_prepare_direct(const weir_call *call,
                                         weir_gpu_conv_shape s,
                                         weir_prepared *out, weir_error *err);

/* Plans |desc|, a function of how many images it is for, for both kinds of
 * slices, and sets the scratch of |out|: patches, rows, workspace. */
weir_status weir_gpu_conv_plan(weir_prepared *out,
                               weir_gemm_desc (*desc)(const weir_gpu_conv *c,
                                                      int64_t images),
                               weir_error *err);
void weir_gpu_conv_release(void *conv);

/* A body for the state's dtype; |blocks| as of weir_gpu_launch. */
weir_status weir_gpu_conv_launch(const weir_args *args, weir_gpu_body f32,
                                 int64_t threads, const weir_conv_args *a);

/* A slice of a run: its first image, how many, its product, and where scratch
 * has its parts. */
typedef struct weir_gpu_conv_slice {
  int64_t first, images;
  const weir_gpu_product *product;
  void *patches, *rows;
  void *workspace;
} weir_gpu_conv_slice;

/* Runs |run| for each slice of images, first to last. */
weir_status weir_gpu_conv_each_slice(
    const weir_args *args,
    weir_status (*run)(const weir_args *args, const weir_gpu_conv_slice *s));

/* |a|'s x and y become those of the slice's images. */
void weir_gpu_conv_to_slice(const weir_gpu_conv *c,
                            const weir_gpu_conv_slice *s, weir_conv_args *a);

/* Elements from a matrix to the next: of another group, of another image. */
typedef struct weir_gpu_conv_steps {
  int64_t group, image;
} weir_gpu_conv_steps;

/* The filters' steps, those of y's, and those of patches side by side. */
weir_gpu_conv_steps weir_gpu_conv_filter_steps(const weir_gpu_conv *c);
weir_gpu_conv_steps weir_gpu_conv_y_steps(const weir_gpu_conv *c);
weir_gpu_conv_steps weir_gpu_conv_patch_steps(const weir_gpu_conv *c);

/* Sets the library's batch of |images| images of matrices with these steps. */
void weir_gpu_conv_batch(const weir_gpu_conv *c, int64_t images,
                         weir_gpu_conv_steps a, weir_gpu_conv_steps b,
                         weir_gpu_conv_steps d, weir_gemm_desc *desc);

/* The slice's product, with the steps that |desc| was made with. */
weir_status weir_gpu_conv_multiply(const weir_args *args,
                                   const weir_gpu_conv_slice *s,
                                   const weir_gpu_matrices *m,
                                   weir_gpu_conv_steps a, weir_gpu_conv_steps b,
                                   weir_gpu_conv_steps d);

/* The alignment that addresses have which lie multiples of these numbers of
 * elements apart. */
uint32_t weir_gpu_conv_align(const weir_gpu_conv *c, int64_t a, int64_t b,
                             int64_t d);

#endif
