/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_CHOOSE_H_
#define WEIR_KERNELS_CPU_CHOOSE_H_

#include "kernels/cpu/isa/isa.h"

/* Chooses the instruction set by asking the processor, so every call in one
 * process gives the same answer. */

/* The best one for this processor. Static, immutable. */
const weir_isa *weir_isa_choose(void);

/* The i-th one this processor can run, best first; NULL past the end. */
const weir_isa *weir_isa_at(int i);

/* The tile function for |op|, or NULL. */
weir_tile_fn weir_isa_tile(const weir_isa *isa, const char *op, unsigned dtype,
                           unsigned target);

#endif
