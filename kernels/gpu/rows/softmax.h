/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_GPU_ROWS_SOFTMAX_H_
#define KERNELS_GPU_ROWS_SOFTMAX_H_

#include "kernels/cuda/rows.h"
#include "kernels/gpu/gpu.h"
#include "kernels/gpu/move/walk.h"

/* One launch of a softmax, by the shape alone. */
typedef struct weir_gpu_softmax {
  weir_gpu_body body;
  uint32_t blocks;
  weir_softmax_args args; /* without addresses; |wide|: if they allow it */
} weir_gpu_softmax;

/* Over |lanes->n| elements, of which none may be. */
void weir_gpu_softmax_plan(const weir_gpu_lanes *lanes, weir_dtype dtype,
                           bool log, weir_gpu_softmax *out);

#endif
