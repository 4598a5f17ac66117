/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cuda/find.h"

#include <stdio.h>

#include "runtime/device/cuda/api.h"
#include "runtime/device/cuda/fail.h"

weir_status weir_cuda_find(const weir_module_host *host,
                           const char *runtime_folder,
                           weir_cuda_found *out_found, weir_error *err) {
  weir_cuda_api api;
  weir_cuda_found found = {0};
  *out_found = found;
  WEIR_TRY(weir_cuda_api_open(host, runtime_folder, &api, err));
  found.driver = api.driver;
  found.runtime = api.runtime;
  for (int i = 0; i < api.gpu_count && i < WEIR_CUDA_GPUS; i++) {
    struct cudaDeviceProp p; /* the driver's list: no work begins */
    cudaError_t e = api.cudaGetDeviceProperties(&p, i);
    if (e != cudaSuccess)
      return weir_cuda_fail(host, err, "W6004", "GPU %d says nothing: %s", i,
                            api.cudaGetErrorString(e));
    weir_cuda_gpu *gpu = &found.gpus[found.gpu_count++];
    snprintf(gpu->name, sizeof gpu->name, "%.*s", (int)sizeof gpu->name - 1,
             p.name);
    gpu->major = p.major;
    gpu->minor = p.minor;
    gpu->total_bytes = p.totalGlobalMem;
  }
  *out_found = found;
  return WEIR_OK;
}
