/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_GPU_EW_OPS_H_
#define KERNELS_GPU_EW_OPS_H_

#include "kernels/kernel.h"

/* The numbers that bodies have for ops (kernels/cuda/ew.h), or -1: none. */

/* A weir_unary_op; |p|: the function's numbers, infinite limits being none. */
int32_t weir_gpu_unary_op(const weir_call *call, double p[2]);

/* A weir_binary_op. */
int32_t weir_gpu_binary_op(const weir_call *call);

/* A weir_compare_op. */
int32_t weir_gpu_compare_op(const weir_call *call);

#endif
