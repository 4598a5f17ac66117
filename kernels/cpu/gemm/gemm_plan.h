/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_GEMM_PLAN_H_
#define WEIR_KERNELS_CPU_GEMM_PLAN_H_

#include "kernels/cpu/gemm/gemm.h"

/* Chooses blocks, order and copies of one product. */

/* Plans a product. |constant_b|: weir_gemm_pack will be used if the plan's
 * copy_b is GIVEN (which it is where packing pays). Sizes of c and operands
 * must have been checked to fit in memory. */
void weir_gemm_plan(const weir_gemm_shape *shape, const weir_isa *isa,
                    bool constant_b, weir_gemm *out);

/* Bytes of a GIVEN b's panels; SIZE_MAX when that is too much. */
size_t weir_gemm_packed_bytes(const weir_gemm *gemm);

#endif
