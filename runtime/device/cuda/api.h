/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEVICE_CUDA_API_H_
#define WEIR_DEVICE_CUDA_API_H_

#include <cuda_runtime_api.h>

#include "runtime/base/module.h"

/* CUDA's runtime library, opened at run time: nothing of CUDA is linked, so a
 * machine without it still has a weir that can say so. The types of the
 * functions are those of the header, and the names stand once, in api.def. */

typedef struct weir_cuda_api {
#define WEIR_CUDA_FUNCTION(f) __typeof__(f) *f;
#include "runtime/device/cuda/api.def"
#undef WEIR_CUDA_FUNCTION
  int driver, runtime; /* versions; 13000: 13.0 */
  int gpu_count;
} weir_cuda_api;

/* Opens the library |name| in |folder|, or where the system's loader looks
 * (NULL or ""). It is never closed. W6004: "|what| cannot be loaded", and why.
 */
weir_status weir_cuda_library_open(const weir_module_host *host,
                                   const char *folder, const char *name,
                                   const char *what, void **out_library,
                                   weir_error *err);

/* Opens the library, from |folder| (an absolute path; NULL: where the system's
 * loader looks), and fills |api|. The library is never closed. Errors: W6004:
 * no library, one that lacks a function or is of another version, no driver or
 * one that is too old, no GPU. */
weir_status weir_cuda_api_open(const weir_module_host *host, const char *folder,
                               weir_cuda_api *api, weir_error *err);

#endif
