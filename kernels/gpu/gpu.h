/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_GPU_GPU_H_
#define KERNELS_GPU_GPU_H_

#include "kernels/cuda/body.h"
#include "kernels/cuda/ew.h"
#include "kernels/kernel.h"
#include "runtime/device/device.h"

/* What kernels for GPUs share: where a run puts its work, and the bodies.
 *
 *   static weir_status relu_run(const weir_args *args) {
 *     const relu_state *s = args->state;
 *     weir_unary_args a = {.y = args->io[1], .x = args->io[0], .n = s->n};
 *     return weir_gpu_launch(args, WEIR_GPU_unary_f32, weir_gpu_blocks(s->n),
 *                            &a, sizeof a);
 *   } */

/* The bodies of kernels/cuda/bodies.def, by number. */
typedef enum weir_gpu_body {
#define WEIR_CUDA_BODY(file, name, args) WEIR_GPU_##name,
#include "kernels/cuda/bodies.def"
#undef WEIR_CUDA_BODY
  WEIR_GPU_BODIES
} weir_gpu_body;

/* A device and its bodies, found once. */
typedef struct weir_gpu {
  weir_device *device;
  const weir_device_body *bodies[WEIR_GPU_BODIES];
} weir_gpu;

/* Finds all bodies of |device|. Errors: W9001: one is missing. */
weir_status weir_gpu_open(weir_device *device, weir_gpu *out, weir_error *err);

/* Where the instructions of a run put their work. */
typedef struct weir_gpu_run {
  const weir_gpu *gpu;
  weir_queue *queue;
  weir_body_block *block; /* in the GPU's memory */
  const uint64_t *step;   /* there: of random numbers */
  uint32_t instr;         /* the number of the instruction that runs */
} weir_gpu_run;

/* Blocks for |n| elements, of which a thread may do several; none for 0. */
uint32_t weir_gpu_blocks(int64_t n);

/* The name that bodies have for a type. */
weir_cast_type weir_gpu_cast_type(weir_dtype dtype);

/* Of two bodies, for f32 and then for f64 in their list, that for |dtype|. */
weir_gpu_body weir_gpu_typed(weir_gpu_body f32, weir_dtype dtype);

/* Puts |blocks| blocks of |body| into the run's queue; with 0 no work. */
weir_status weir_gpu_launch(const weir_args *args, weir_gpu_body body,
                            uint32_t blocks, const void *body_args,
                            size_t bytes);

/* Copies |bytes| bytes within the GPU, in the queue's order. */
weir_status weir_gpu_copy(const weir_args *args, void *dst, const void *src,
                          size_t bytes);

#endif
