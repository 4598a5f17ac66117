/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEVICE_CUDA_GEMM_H_
#define WEIR_DEVICE_CUDA_GEMM_H_

#include "runtime/device/gemm.h"

/* Products of matrices on a GPU, by cuBLASLt. */

extern const weir_gemm_vtable weir_cuda_gemm;

#endif
