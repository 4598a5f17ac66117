/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cuda/lt.h"

#include <dlfcn.h>
#include <stdio.h>

#include "runtime/device/cuda/fail.h"
#include "runtime/device/cuda/gpu.h"

/* The number in the soname is cuBLAS's major version, as in api.c. */
#define LIBRARY "libcublasLt.so.13"
enum { kMajor = 13 };
_Static_assert(CUBLAS_VER_MAJOR == kMajor,
               "the headers are those of another cuBLAS than LIBRARY");

void weir_cuda_lt_init(weir_cuda_lt *lt, const char *folder) {
  pthread_mutex_init(&lt->lock, NULL);
  lt->handle = NULL;
  snprintf(lt->folder, sizeof lt->folder, "%s", folder != NULL ? folder : "");
}

/* A destruction that fails has nobody to tell. */
void weir_cuda_lt_release(weir_cuda_lt *lt) {
  if (lt->handle != NULL) (void)lt->api.cublasLtDestroy(lt->handle);
  pthread_mutex_destroy(&lt->lock);
}

static weir_status fill(weir_cuda_device *gpu, void *library, weir_error *err) {
  weir_cuda_lt_api *api = &gpu->lt.api;
  const char *missing = NULL;
/* POSIX lets a function's address be a void *. */
#define WEIR_CUDA_LT_FUNCTION(f)                        \
  if ((*(void **)&api->f = dlsym(library, #f)) == NULL) \
    missing = missing != NULL ? missing : #f;
#include "runtime/device/cuda/lt.def"
#undef WEIR_CUDA_LT_FUNCTION
  if (missing == NULL) return WEIR_OK;
  return weir_cuda_fail(gpu->host, err, "W6004", LIBRARY " has no function %s",
                        missing);
}

/* cuBLAS writes 13.1.2 as 130102. */
static weir_status check_version(weir_cuda_device *gpu, weir_error *err) {
  size_t version = gpu->lt.api.cublasLtGetVersion();
  if (version / 10000 == kMajor) return WEIR_OK;
  return weir_cuda_fail(gpu->host, err, "W6004",
                        LIBRARY " is of cuBLAS %zu.%zu, this weir needs %d",
                        version / 10000, version / 100 % 100, kMajor);
}

static weir_status open_locked(weir_cuda_device *gpu, weir_error *err) {
  void *library = NULL;
  cublasLtHandle_t handle = NULL;
  if (gpu->lt.handle != NULL) return WEIR_OK;
  WEIR_TRY(weir_cuda_library_open(gpu->host, gpu->lt.folder, LIBRARY,
                                  "cuBLASLt, for matrix products,", &library,
                                  err));
  WEIR_TRY(fill(gpu, library, err));
  WEIR_TRY(check_version(gpu, err));
  cublasStatus_t r = gpu->lt.api.cublasLtCreate(&handle);
  WEIR_TRY(weir_cuda_lt_check(gpu, r, "cublasLtCreate", err));
  gpu->lt.handle = handle;
  return WEIR_OK;
}

weir_status weir_cuda_lt_open(weir_cuda_device *gpu, weir_error *err) {
  pthread_mutex_lock(&gpu->lt.lock);
  weir_status s = open_locked(gpu, err);
  pthread_mutex_unlock(&gpu->lt.lock);
  return s;
}

/* cuBLAS does not tell which error of CUDA it met. One that stays is told again
 * by the next call of CUDA, and setting the GPU is one. */
weir_status weir_cuda_lt_check(weir_cuda_device *gpu, cublasStatus_t result,
                               const char *call, weir_error *err) {
  if (result == CUBLAS_STATUS_SUCCESS) return WEIR_OK;
  WEIR_TRY(weir_cuda_gpu_enter(gpu, err));
  const char *id = result == CUBLAS_STATUS_ALLOC_FAILED ? "W6001" : "W5001";
  return weir_cuda_fail(gpu->host, err, id, "GPU %d: %s: %s", gpu->gpu, call,
                        gpu->lt.api.cublasLtGetStatusString(result));
}
