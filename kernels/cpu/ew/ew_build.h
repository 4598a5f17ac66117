/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_EW_BUILD_H_
#define WEIR_KERNELS_CPU_EW_BUILD_H_

#include "kernels/cpu/ew/ew.h"

/* Makes an element-wise program of the calls of a group. */

/* Plans calls |first|.. of |group|; a member before |first| is the anchor, and
 * its value is read from |anchor_io|, where it must lie complete (row-major) or
 * as far as the region asks. |keep_rows|: the last dim of the space stays as
 * the calls have it, for weir_ew_region by rows and columns of a matrix;
 * refused unless the rest is one dim. False with the reason when it cannot. */
bool weir_ew_build(const weir_group *group, uint32_t first, int32_t anchor_io,
                   bool keep_rows, weir_ew_room *room, weir_why *why);

/* The tile function of a call with one input, and its attributes. False when
 * there is none. */
bool weir_ew_unary(const weir_call *call, const weir_isa *isa, weir_tile_fn *fn,
                   float p[2]);

/* The program of |room| in |arena|, without the room it did not need. NULL:
 * no memory. */
const weir_ew *weir_ew_keep(const weir_ew_room *room, weir_arena *arena);

#endif
