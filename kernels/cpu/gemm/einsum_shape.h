/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_EINSUM_SHAPE_H_
#define WEIR_KERNELS_CPU_EINSUM_SHAPE_H_

#include "kernels/cpu/gemm/gemm.h"

/* Reads an einsum call as a product that gemm knows. */

/* The shape of an einsum call with two operands, if its indices are batch
 * dimensions, rows, columns and summed ones that lie as gemm can read them.
 * |swapped|: input 1 is its a. False with the reason if not. */
bool weir_einsum_shape(const weir_call *call, weir_gemm_shape *out,
                       bool *swapped, weir_why *why);

#endif
