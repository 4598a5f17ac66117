/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_MATMUL_H_
#define KERNELS_CPU_MATMUL_H_

#include "kernels/cpu/ew/ew.h"
#include "kernels/cpu/gemm/gemm.h"

/* A matmul or einsum call as one product of matrices, perhaps with element-wise
 * calls after it (kernels/cpu/gemm/gemm.h does the work). */

/* The state of a run. */
typedef struct weir_matmul {
  weir_gemm gemm;
  void *packed; /* panels of a constant b, or NULL */
  const weir_allocator *alloc;
  const weir_ew *epilogue; /* or NULL */
  int32_t a_io, b_io, out_io;
} weir_matmul;

#endif
