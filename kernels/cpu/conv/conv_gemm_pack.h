/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_CONV_GEMM_PACK_H_
#define WEIR_KERNELS_CPU_CONV_GEMM_PACK_H_

#include "kernels/cpu/conv/conv_gemm.h"

/* Packs pixels into the panels that the product reads. */

/* Pixels [first, first + count) of the band into panels: |depth| rows from
 * k0, a tile's columns wide. |copy|: the band's padded input. Writes up to 63
 * bytes too many at the end. */
void weir_conv_gemm_pack(const weir_conv_gemm *plan, const char *copy,
                         char *panels, int64_t k0, int64_t depth,
                         int64_t pixels);

#endif
