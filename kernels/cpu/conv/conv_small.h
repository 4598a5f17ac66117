/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_CONV_SMALL_H_
#define WEIR_KERNELS_CPU_CONV_SMALL_H_

#include "kernels/cpu/conv/conv.h"

/* The direct convolution of a block of images that are small. */

/* The same for images that are small. */
void weir_conv_block_small(const weir_conv_plan *plan, const float *packed,
                           const float *x, float *y, int64_t b, char *scratch);

#endif
