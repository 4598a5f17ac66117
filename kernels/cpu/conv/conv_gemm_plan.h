/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_CONV_GEMM_PLAN_H_
#define WEIR_KERNELS_CPU_CONV_GEMM_PLAN_H_

#include "kernels/cpu/conv/conv_gemm.h"

/* Plans a convolution as a product of matrices. */

/* Plans conv2d |call|. False with the reason if there is nothing to multiply
 * or the copies are too large. */
bool weir_conv_gemm_plan(const weir_call *call, weir_conv_gemm *out,
                         weir_why *why);

#endif
