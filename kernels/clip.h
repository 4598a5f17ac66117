/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CLIP_H_
#define KERNELS_CLIP_H_

#include "kernels/kernel.h"

/* The limits of a `clip` of integers, for any device: the least and the largest
 * integers that the attributes allow, as numbers of the call's dtype. x is
 * raised to the first and then lowered to the second, which wins where no
 * integer lies between them. */
void weir_clip_limits(const weir_call *call, int64_t out[2]);

#endif
