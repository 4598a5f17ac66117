/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_CONV_H_
#define KERNELS_CUDA_CONV_H_

#include "kernels/cuda/window.h"

/* Arguments of the bodies of conv.cu, for f32 and f64, of which each uses some:
 * images x of window.in, of |c| channels in each of |groups|, filters w, images
 * y of window.out, of |oc| channels in each group. The gradients have the same
 * names as what they are of. Grids: any number of blocks in x.
 *
 * Patches are a matrix of a row for each channel and element of a filter,
 * groups c kernel.hw, and a column for each place of an image: patches[n image
 * + k row + place]. */

enum {
  WEIR_CONV_TILE = 4,   /* output channels of a thread of conv_direct */
  WEIR_CONV_WIDE = 4096 /* a sum of more places is a block's, else a warp's */
};

typedef struct weir_conv_args {
  void *y, *x, *w, *patches;
  const void *bias; /* or NULL */
  weir_body_window window;
  int32_t images, c, oc, groups;
  weir_divisor c_each, oc_each, group_each; /* c, oc, groups */
  weir_divisor all_c, all_oc;               /* of all groups */
  weir_divisor tiles;                       /* of a group's oc */
  int64_t image, row;
} weir_conv_args;

/* conv_patches: patches of x; 0 in the border.
 * conv_image: x, each element the sum of its places in patches.
 * conv_rows: patches[o row + n image + place] = y, a row for each channel.
 * conv_bias: adds the bias to y.
 * conv_direct, conv_direct_input, conv_direct_weight: y, x, w of
 * the other two, without patches; the last one has a block for each element.
 * conv_depthwise: y, where a group has one channel and one output. */

#endif
