/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cuda/api.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>

#include "runtime/device/cuda/fail.h"

/* The one soname whose functions have the types of our header: within a major
 * version CUDA keeps its interface, and the number in the name is that one. */
#define LIBRARY "libcudart.so.13"
enum { kMajor = 13 };
_Static_assert(CUDART_VERSION / 1000 == kMajor,
               "the headers are those of another CUDA than LIBRARY");

/* CUDA writes 13.1 as 13010. */
static int minor_of(int version) {
  return version % 1000 / 10;
}

weir_status weir_cuda_library_open(const weir_module_host *host,
                                   const char *folder, const char *name,
                                   const char *what, void **out_library,
                                   weir_error *err) {
  char path[PATH_MAX];
  bool named = folder != NULL && folder[0] != '\0';
  int n = snprintf(path, sizeof path, "%s%s%s", named ? folder : "",
                   named ? "/" : "", name);
  if (n < 0 || (size_t)n >= sizeof path)
    return weir_cuda_fail(host, err, "W6004",
                          "the path of CUDA's folder is too long");
  *out_library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (*out_library != NULL) return WEIR_OK;
  const char *why = dlerror();
  return weir_cuda_fail(host, err, "W6004", "%s cannot be loaded: %s", what,
                        why != NULL ? why : path);
}

static weir_status fill(const weir_module_host *host, void *library,
                        weir_cuda_api *api, weir_error *err) {
  const char *missing = NULL;
/* POSIX lets a function's address be a void *. */
#define WEIR_CUDA_FUNCTION(f)                           \
  if ((*(void **)&api->f = dlsym(library, #f)) == NULL) \
    missing = missing != NULL ? missing : #f;
#include "runtime/device/cuda/api.def"
#undef WEIR_CUDA_FUNCTION
  if (missing == NULL) return WEIR_OK;
  return weir_cuda_fail(host, err, "W6004", LIBRARY " has no function %s",
                        missing);
}

static weir_status check_versions(const weir_module_host *host,
                                  weir_cuda_api *api, weir_error *err) {
  cudaError_t e = api->cudaRuntimeGetVersion(&api->runtime);
  if (e == cudaSuccess) e = api->cudaDriverGetVersion(&api->driver);
  if (e != cudaSuccess)
    return weir_cuda_fail(host, err, "W6004", "CUDA tells no version: %s",
                          api->cudaGetErrorString(e));
  if (api->runtime / 1000 != kMajor)
    return weir_cuda_fail(host, err, "W6004",
                          LIBRARY " is of CUDA %d.%d, this weir needs %d",
                          api->runtime / 1000, minor_of(api->runtime), kMajor);
  return WEIR_OK;
}

/* The first call that needs the driver: without one, or with one that is too
 * old for the library, CUDA has the same error. */
static weir_status count_gpus(const weir_module_host *host, weir_cuda_api *api,
                              weir_error *err) {
  cudaError_t e = api->cudaGetDeviceCount(&api->gpu_count);
  if (e == cudaErrorInsufficientDriver && api->driver == 0)
    return weir_cuda_fail(host, err, "W6004",
                          "no NVIDIA driver is on this machine");
  if (e == cudaErrorInsufficientDriver)
    return weir_cuda_fail(host, err, "W6004",
                          "the NVIDIA driver is too old: it knows CUDA %d.%d, "
                          "%d.%d is needed",
                          api->driver / 1000, minor_of(api->driver),
                          api->runtime / 1000, minor_of(api->runtime));
  if (e == cudaErrorNoDevice || (e == cudaSuccess && api->gpu_count <= 0))
    return weir_cuda_fail(host, err, "W6004",
                          "the NVIDIA driver has no GPU for this process");
  if (e != cudaSuccess)
    return weir_cuda_fail(host, err, "W6004", "CUDA does not start: %s",
                          api->cudaGetErrorString(e));
  return WEIR_OK;
}

weir_status weir_cuda_api_open(const weir_module_host *host, const char *folder,
                               weir_cuda_api *api, weir_error *err) {
  void *library = NULL;
  if (folder != NULL && folder[0] != '/')
    return weir_cuda_fail(host, err, "W6004",
                          "the folder of CUDA, %s, is not an absolute path",
                          folder);
  WEIR_TRY(weir_cuda_library_open(host, folder, LIBRARY,
                                  "CUDA's runtime library", &library, err));
  WEIR_TRY(fill(host, library, api, err));
  WEIR_TRY(check_versions(host, api, err));
  return count_gpus(host, api, err);
}
