/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_PACK_H_
#define PLACEMENT_PACK_H_

#include "placement/solver/solver.h"

/* Packing of plans from both ends, for equal devices and free copies. */

/* Whether copies take no time and go everywhere. */
bool weir_solver_copies_are_free(const weir_place_problem *problem);
/* Fills |s->reversed| where plans of the problem can be packed. Errors: W6001.
 */
weir_status weir_solver_prepare_packing(weir_solver *s);
/* Packs s->plan until it gets no shorter. Errors: W6001. */
weir_status weir_solver_pack(weir_solver *s);

#endif
