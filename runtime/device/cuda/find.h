/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEVICE_CUDA_FIND_H_
#define WEIR_DEVICE_CUDA_FIND_H_

#include "runtime/device/cuda.h"

/* weir_cuda_functions.find: the GPUs that are there. Errors: W6004. */
weir_status weir_cuda_find(const weir_module_host *host,
                           const char *runtime_folder,
                           weir_cuda_found *out_found, weir_error *err);

#endif
