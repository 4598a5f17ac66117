/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix tiles of f32. */
#define REAL float
#define INTEGER int32_t
#define TABLE ISA(gemm_f32)
#include "kernels/cpu/isa/gemm/body.h"
