/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_CONV_H_
#define KERNELS_CUDA_CONV_H_

#include "kernels/cuda/window.h"

/* Arguments of the bodies of conv.cu, of which each uses some: images x of
 * window.in, of |c| channels in each of |groups|, filters w, images y of
 * window.out, of |oc| channels in each group. The gradients have the same names
 * as what they are of. Grids: any number of blocks in x.
 *
 * Patches are a matrix of a row for each element of a filter, c kernel.hw, and
 * a column for each place of an image: patches[n image + k row + place]. */

enum { WEIR_CONV_TILE = 4 }; /* output channels of a thread of conv_direct */

typedef struct weir_conv_args {
  float *y, *x, *w, *patches;
  const float *bias; /* or NULL */
  weir_body_window window;
  int32_t images, c, oc, groups;
  weir_divisor c_each, oc_each, group_each; /* c, oc, groups */
  weir_divisor all_c, tiles; /* groups c; tiles of a group's oc */
  int64_t image, row;
} weir_conv_args;

/* conv_patches_f32: patches of x; 0 in the border.
 * conv_image_f32: x, each element the sum of its places in patches.
 * conv_rows_f32: patches[o row + n image + place] = y, oc rows.
 * conv_bias_f32: adds the bias to y.
 * conv_direct_f32, conv_direct_input_f32, conv_direct_weight_f32: y, x, w of
 * the other two, without patches; the last one has a block for each element.
 * The bodies of patches take one group, the others any number. */

#endif
