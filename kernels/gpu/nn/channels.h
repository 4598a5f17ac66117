/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_GPU_NN_CHANNELS_H_
#define KERNELS_GPU_NN_CHANNELS_H_

#include "kernels/cuda/norm.h"
#include "kernels/gpu/gpu.h"

/* Sums over the channels of a tensor, dimension 1. Slices follow from its shape
 * alone. */

/* All but the addresses of a tensor like |x|, of at most 2^31 - 1 elements. */
weir_channels_args weir_gpu_channels(const weir_operand *x);

/* Bytes of |parts|. */
size_t weir_gpu_channel_parts(const weir_channels_args *a);

/* Launches a body that makes parts, and then one that joins them: those of
 * |dtype|, of which the ones for f32 are given. */
weir_status weir_gpu_channel_run(const weir_args *args, weir_dtype dtype,
                                 weir_gpu_body body, weir_gpu_body end,
                                 const weir_channels_args *a);

#endif
