/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEVICE_CUDA_GEMM_TUNE_H_
#define WEIR_DEVICE_CUDA_GEMM_TUNE_H_

#include "runtime/device/gemm.h"

/* weir_gemm_vtable.tune. */
weir_status weir_cuda_gemm_tune(weir_device *device, weir_gemm_plan *plan,
                                bool *out_tuned, weir_gemm_choice *out_choice,
                                size_t *out_workspace_bytes, weir_error *err);

#endif
