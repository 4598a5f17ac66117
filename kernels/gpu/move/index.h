/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_GPU_MOVE_INDEX_H_
#define KERNELS_GPU_MOVE_INDEX_H_

#include "kernels/cuda/index.h"
#include "kernels/gpu/gpu.h"

/* Operands that are numbers of rows. */

weir_indices weir_gpu_indices(const weir_operand *x, const void *data);

/* Makes the first index outside [low, high) the run's fault, unless there is
 * one. */
weir_status weir_gpu_check(const weir_args *args, const weir_indices *indices,
                           int64_t low, int64_t high);

#endif
