/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cuda/gpu.h"

#include "runtime/device/cuda/body.h"
#include "runtime/device/cuda/copy.h"
#include "runtime/device/cuda/fail.h"
#include "runtime/device/cuda/gemm.h"
#include "runtime/device/cuda/graph.h"
#include "runtime/device/cuda/queue.h"

/* The device: its life, and the meaning of CUDA's errors. */

/* Errors that stay: CUDA answers every later call with them, in this process
 * or for this GPU, until the process ends. cudaErrorUnknown may pass, but no
 * program can tell. */
static bool is_sticky(cudaError_t e) {
  static const int kSticky[] = {
      cudaErrorCudartUnloading,     cudaErrorECCUncorrectable,
      cudaErrorNvlinkUncorrectable, cudaErrorContained,
      cudaErrorIllegalAddress,      cudaErrorLaunchTimeout,
      cudaErrorContextIsDestroyed,  cudaErrorAssert,
      cudaErrorHardwareStackError,  cudaErrorIllegalInstruction,
      cudaErrorMisalignedAddress,   cudaErrorInvalidAddressSpace,
      cudaErrorInvalidPc,           cudaErrorLaunchFailure,
      cudaErrorTensorMemoryLeak,    cudaErrorMpsClientTerminated,
      cudaErrorExternalDevice,      cudaErrorUnknown};
  for (size_t i = 0; i < sizeof kSticky / sizeof kSticky[0]; i++)
    if (kSticky[i] == (int)e) return true;
  return false;
}

void weir_cuda_gpu_note(weir_cuda_device *gpu, cudaError_t result) {
  if (result == cudaSuccess || !is_sticky(result)) return;
  int none = 0; /* the first one is the reason */
  atomic_compare_exchange_strong(&gpu->error, &none, (int)result);
  atomic_store(&gpu->base.lost, true);
}

static weir_status fail_lost(weir_cuda_device *gpu, weir_error *err) {
  cudaError_t e = (cudaError_t)atomic_load(&gpu->error);
  return weir_cuda_fail(gpu->host, err, "W6004", "GPU %d is lost: %s", gpu->gpu,
                        gpu->api.cudaGetErrorString(e));
}

weir_status weir_cuda_gpu_check(weir_cuda_device *gpu, cudaError_t result,
                                const char *call, weir_error *err) {
  if (result == cudaSuccess) return WEIR_OK;
  weir_cuda_gpu_note(gpu, result);
  if (atomic_load(&gpu->base.lost)) return fail_lost(gpu, err);
  const char *id = result == cudaErrorMemoryAllocation ? "W6001" : "W5001";
  return weir_cuda_fail(gpu->host, err, id, "GPU %d: %s: %s", gpu->gpu, call,
                        gpu->api.cudaGetErrorString(result));
}

weir_status weir_cuda_gpu_enter(weir_cuda_device *gpu, weir_error *err) {
  if (atomic_load(&gpu->base.lost)) return fail_lost(gpu, err);
  return weir_cuda_gpu_check(gpu, gpu->api.cudaSetDevice(gpu->gpu),
                             "cudaSetDevice", err);
}

static void gpu_release(weir_device *device) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  weir_cuda_gpu_note(gpu, gpu->api.cudaSetDevice(gpu->gpu));
  weir_cuda_body_close(gpu);
  weir_cuda_lt_release(&gpu->lt);
  weir_cuda_cache_release(gpu);
  gpu->host->free(gpu->env, gpu);
}

static const weir_device_vtable kGpu = {
    .release = gpu_release,
    .alloc = weir_cuda_cache_alloc,
    .free = weir_cuda_cache_free,
    .host_alloc = weir_cuda_copy_host_alloc,
    .host_free = weir_cuda_copy_host_free,
    .copy_in = weir_cuda_copy_in,
    .copy_out = weir_cuda_copy_out,
    .copy = weir_cuda_copy_within,
    .copy_peer = weir_cuda_copy_peer,
    .body = weir_cuda_body_find,
    .launch = weir_cuda_body_launch,
    .capture_begin = weir_cuda_graph_begin,
    .capture_end = weir_cuda_graph_end,
    .replay = weir_cuda_graph_replay,
    .graph_release = weir_cuda_graph_release,
    .queue_create = weir_cuda_queue_create,
    .queue_release = weir_cuda_queue_release,
    .event_create = weir_cuda_queue_event_create,
    .event_release = weir_cuda_queue_event_release,
    .record = weir_cuda_queue_record,
    .queue_wait = weir_cuda_queue_wait,
    .wait = weir_cuda_queue_event_wait,
    .is_over = weir_cuda_queue_event_is_over,
    .timer_create = weir_cuda_queue_timer_create,
    .elapsed = weir_cuda_queue_elapsed,
    .memory = weir_cuda_cache_memory,
    .set_limit = weir_cuda_cache_set_limit,
    .gemm = &weir_cuda_gemm,
};

/* Begins work on the GPU: the driver makes room for this process on it. Until
 * then another process may hold it alone, or it may be gone. */
static weir_status start(weir_cuda_device *gpu, weir_error *err) {
  struct cudaDeviceProp p;
  if (gpu->gpu < 0 || gpu->gpu >= gpu->api.gpu_count)
    return weir_cuda_fail(gpu->host, err, "W6004",
                          "there is no GPU %d: CUDA sees %d", gpu->gpu,
                          gpu->api.gpu_count);
  cudaError_t e = gpu->api.cudaGetDeviceProperties(&p, gpu->gpu);
  if (e == cudaSuccess) e = gpu->api.cudaSetDevice(gpu->gpu);
  if (e == cudaSuccess) {
    gpu->total_bytes = p.totalGlobalMem;
    return WEIR_OK;
  }
  const char *id = e == cudaErrorMemoryAllocation ? "W6001" : "W6004";
  return weir_cuda_fail(gpu->host, err, id, "GPU %d does not start: %s",
                        gpu->gpu, gpu->api.cudaGetErrorString(e));
}

weir_status weir_cuda_gpu_create(const weir_module_host *host,
                                 const weir_env *env,
                                 const weir_device_name *name,
                                 const weir_cuda_options *options,
                                 weir_device **out_device, weir_error *err) {
  *out_device = NULL;
  weir_cuda_device *gpu = host->alloc(env, sizeof *gpu);
  if (gpu == NULL)
    return weir_cuda_fail(host, err, "W6001", "no memory for a GPU's device");
  *gpu = (weir_cuda_device){.base = {.vt = &kGpu, .alloc = env->alloc},
                            .host = host,
                            .env = env,
                            .gpu = options->gpu};
  gpu->base.name = *name;
  weir_cuda_cache_init(&gpu->cache, options->limit_bytes);
  weir_status s =
      weir_cuda_api_open(host, options->runtime_folder, &gpu->api, err);
  if (s == WEIR_OK) s = start(gpu, err);
  if (s == WEIR_OK) s = weir_cuda_body_open(gpu, err);
  if (s == WEIR_OK) {
    weir_cuda_lt_init(&gpu->lt, options->runtime_folder);
    *out_device = &gpu->base;
    return WEIR_OK;
  }
  weir_cuda_body_close(gpu);
  weir_cuda_cache_end(&gpu->cache);
  host->free(env, gpu);
  return s;
}
