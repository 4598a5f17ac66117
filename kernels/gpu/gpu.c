/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gpu/gpu.h"

#include <assert.h>

/* Blocks that keep a large GPU busy: 16 of 256 threads for each of 256
 * multiprocessors. Beyond, a thread takes several elements. */
enum { kMostBlocks = 4096 };

weir_status weir_gpu_open(weir_device *device, weir_gpu *out, weir_error *err) {
  static const char *const kNames[] = {
#define WEIR_CUDA_BODY(file, name, args) #name,
#include "kernels/cuda/bodies.def"
#undef WEIR_CUDA_BODY
  };
  *out = (weir_gpu){.device = device};
  for (int i = 0; i < WEIR_GPU_BODIES; i++)
    WEIR_TRY(device->vt->body(device, kNames[i], &out->bodies[i], err));
  return WEIR_OK;
}

uint32_t weir_gpu_blocks(int64_t n) {
  int64_t blocks = n / WEIR_BODY_THREADS + (n % WEIR_BODY_THREADS != 0);
  return (uint32_t)(blocks < kMostBlocks ? blocks : kMostBlocks);
}

weir_gpu_body weir_gpu_typed(weir_gpu_body f32, weir_dtype dtype) {
  assert(dtype == WEIR_F32 || dtype == WEIR_F64);
  return (weir_gpu_body)((int)f32 + (dtype == WEIR_F64));
}

weir_status weir_gpu_launch(const weir_args *args, weir_gpu_body body,
                            uint32_t blocks, const void *body_args,
                            size_t bytes) {
  const weir_gpu_run *run = args->ctx->gpu;
  weir_device *d = run->gpu->device;
  const weir_device_grid grid = {{blocks, 1, 1}, WEIR_BODY_THREADS, 0};
  return d->vt->launch(d, run->queue, run->gpu->bodies[body], &grid, body_args,
                       bytes, args->err);
}

weir_cast_type weir_gpu_cast_type(weir_dtype dtype) {
  switch (dtype) {
    case WEIR_F32:
      return WEIR_CAST_F32;
    case WEIR_F64:
      return WEIR_CAST_F64;
    case WEIR_I32:
      return WEIR_CAST_I32;
    case WEIR_I64:
      return WEIR_CAST_I64;
    case WEIR_U8:
      return WEIR_CAST_U8;
    default:
      return WEIR_CAST_BOOL;
  }
}

weir_status weir_gpu_copy(const weir_args *args, void *dst, const void *src,
                          size_t bytes) {
  const weir_gpu_run *run = args->ctx->gpu;
  weir_device *d = run->gpu->device;
  const weir_device_buffer to = {dst, NULL, bytes};
  const weir_device_buffer from = {(void *)(uintptr_t)src, NULL, bytes};
  if (bytes == 0) return WEIR_OK;
  return d->vt->copy(d, run->queue, (weir_device_place){&to, 0},
                     (weir_device_place){&from, 0}, bytes, args->err);
}
