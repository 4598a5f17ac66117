/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_CHOOSE_H_
#define WEIR_KERNELS_CPU_CHOOSE_H_

#include "kernels/cpu/isa/isa.h"
#include "kernels/kernel.h"

/* Instruction sets: those of this processor, and the one that a call is for. */

/* The set of |call|'s profile (kernels/profile.h). Static, immutable. */
const weir_isa *weir_isa_of(const weir_call *call);

/* The i-th one this processor can run, best first; NULL past the end. */
const weir_isa *weir_isa_at(int i);

/* 1 for the set of every machine, 2 AVX2 or NEON, 3 AVX-512. */
int weir_isa_level(const weir_isa *isa);

/* The layout of blocks of channels in which |profile| convolves (0: this
 * machine's best): the set's vectors and oneDNN's, whichever are shorter.
 * WEIR_LAYOUT_PLAIN: it has none. */
weir_layout weir_isa_blocks(uint64_t profile);

/* The tile function for |op|, or NULL. */
weir_tile_fn weir_isa_tile(const weir_isa *isa, const char *op, unsigned dtype,
                           unsigned target);

#endif
