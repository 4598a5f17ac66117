/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_MATMUL_H_
#define KERNELS_CPU_MATMUL_H_

#include "kernels/cpu/ew/ew.h"
#include "kernels/cpu/gemm/gemm.h"

/* A matmul or einsum call as one product of matrices, perhaps with element-wise
 * calls after it (kernels/cpu/gemm/gemm.h does the work). */

/* The shape of a matmul call. A b without batches makes the batches
 * of a one long matrix where that is the same. */
void weir_matmul_shape(const weir_call *call, weir_gemm_shape *out);

/* The shape of an einsum call with two operands, if its indices are batch
 * dimensions, rows, columns and summed ones that lie as gemm can read them.
 * |swapped|: input 1 is its a. False with the reason if not. */
bool weir_einsum_shape(const weir_call *call, weir_gemm_shape *out,
                       bool *swapped, weir_why *why);

/* The operand of a group's run that its first call's result is written to: an
 * output of its own if it is one, else the last call's, which then works in
 * place. -1: neither fits. */
int32_t weir_anchor_io(const weir_group *group);

/* What run is given as state. */
typedef struct weir_matmul {
  weir_gemm gemm;
  void *packed; /* panels of a constant b, or NULL */
  const weir_allocator *alloc;
  const weir_ew *epilogue; /* or NULL */
  int32_t a_io, b_io, out_io;
} weir_matmul;

#endif
