/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEVICE_CUDA_GPU_H_
#define WEIR_DEVICE_CUDA_GPU_H_

#include "runtime/device/cuda.h"
#include "runtime/device/cuda/api.h"
#include "runtime/device/cuda/body.h"
#include "runtime/device/cuda/cache.h"
#include "runtime/device/cuda/lt.h"

/* A GPU as a device: what its files share.
 *
 * Any thread calls. CUDA's runtime takes care of its own; the cache and |lt|
 * have a lock each; the rest does not change but for |error|, which is set
 * once, and |ways|. */

typedef struct weir_cuda_device {
  weir_device base; /* first: the vtable finds it */
  const weir_module_host *host;
  const weir_env *env;
  weir_cuda_api api;
  int gpu;
  size_t total_bytes;
  atomic_int error;      /* the sticky one that lost the GPU; 0 before */
  _Atomic uint64_t ways; /* bit i: GPU i's memory was asked for (copy.c) */
  weir_cuda_cache cache;
  weir_cuda_loaded loaded; /* bodies */
  weir_cuda_lt lt;
} weir_cuda_device;

/* weir_cuda_functions.create. Errors: W6004, W6001. */
weir_status weir_cuda_gpu_create(const weir_module_host *host,
                                 const weir_env *env,
                                 const weir_device_name *name,
                                 const weir_cuda_options *options,
                                 weir_device **out_device, weir_error *err);

/* Begins a call: makes the GPU this thread's, unless it is lost. */
weir_status weir_cuda_gpu_enter(weir_cuda_device *gpu, weir_error *err);

/* Looks at the result of |call| ("cudaMalloc"): sets |lost| after a sticky
 * error. W6004: lost; W6001: no memory; W5001: any other error. */
weir_status weir_cuda_gpu_check(weir_cuda_device *gpu, cudaError_t result,
                                const char *call, weir_error *err);

/* The same for calls that cannot report: only |lost| stays of the result. */
void weir_cuda_gpu_note(weir_cuda_device *gpu, cudaError_t result);

#endif
