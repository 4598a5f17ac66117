/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_CONV_IMAGES_H_
#define WEIR_KERNELS_CPU_CONV_IMAGES_H_

#include "kernels/cpu/conv/conv.h"

/* The direct convolution of a block of large images. */

/* Images |first|.. of block |b|, in the plan's form. |scratch|: the worker's.
 */
void weir_conv_block_images(const weir_conv_plan *plan, const float *packed,
                            const float *x, float *y, int64_t b, char *scratch);

#endif
