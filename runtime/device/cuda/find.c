/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cuda/find.h"

#include <stdio.h>

#include "runtime/device/cuda/api.h"
#include "runtime/device/cuda/fail.h"

static void print_id(const struct cudaDeviceProp *p,
                     char out[WEIR_CUDA_NAME_BYTES]) {
  size_t at = (size_t)snprintf(out, WEIR_CUDA_NAME_BYTES, "GPU-");
  for (size_t i = 0; i < sizeof p->uuid.bytes; i++)
    at += (size_t)snprintf(out + at, WEIR_CUDA_NAME_BYTES - at, "%02x",
                           (unsigned)(unsigned char)p->uuid.bytes[i]);
}

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
    print_id(&p, gpu->id);
  }
  *out_found = found;
  return WEIR_OK;
}
