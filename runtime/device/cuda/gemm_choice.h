/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEVICE_CUDA_GEMM_CHOICE_H_
#define WEIR_DEVICE_CUDA_GEMM_CHOICE_H_

#include "runtime/device/cuda/gemm_internal.h"

/* Algorithms of cuBLASLt as numbers. */

/* Those of |algo|. */
weir_status weir_cuda_gemm_choice_of(weir_cuda_device *gpu,
                                     const cublasLtMatmulAlgo_t *algo,
                                     weir_gemm_choice *out, weir_error *err);

/* weir_gemm_vtable.library and .choose. */
weir_status weir_cuda_gemm_name(weir_device *device, weir_gemm_library *out,
                                weir_error *err);
weir_status weir_cuda_gemm_choose(weir_device *device, weir_gemm_plan *plan,
                                  const weir_gemm_choice *choice,
                                  bool *out_chosen, size_t *out_workspace_bytes,
                                  weir_error *err);

#endif
