/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cuda.h"
#include "runtime/device/cuda/find.h"
#include "runtime/device/cuda/gpu.h"

/* The one symbol of libweir_cuda.so. */

static const weir_cuda_functions kFunctions = {weir_cuda_find,
                                               weir_cuda_gpu_create};

extern const weir_module_head weir_module;
WEIR_API const weir_module_head weir_module = {
    WEIR_MODULE_VERSION, WEIR_CUDA_VERSION, "cuda", &kFunctions};
