/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_WALK_H_
#define PLACEMENT_WALK_H_

#include "placement/solver/solver.h"

/* Local search from the plans of lists. */

/* Sets out from the portfolio's best. Errors: W3012-W3014, W6001. */
weir_status weir_solver_set_out(weir_solver *s);
/* Walks on until s->moves are |last|, or the bound is met, or the search is
 * stopped. Errors: the same. */
weir_status weir_solver_walk(weir_solver *s, uint64_t last);

#endif
