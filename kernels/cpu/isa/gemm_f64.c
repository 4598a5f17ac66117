/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix tiles of f64. */
#define REAL double
#define INTEGER int64_t
#define TABLE ISA(gemm_f64)
#include "kernels/cpu/isa/gemm/body.h"
