/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_MATMUL_SHAPE_H_
#define WEIR_KERNELS_CPU_MATMUL_SHAPE_H_

#include "kernels/cpu/gemm/gemm.h"

/* Reads a matmul call as a product that gemm knows. */

/* The shape of a matmul call. A b without batches makes the batches
 * of a one long matrix where that is the same. */
void weir_matmul_shape(const weir_call *call, weir_gemm_shape *out);

/* The operand of a group's run that its first call's result is written to: an
 * output of its own if it is one, else the last call's, which then works in
 * place. -1: neither fits. */
int32_t weir_anchor_io(const weir_group *group);

#endif
