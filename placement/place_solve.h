/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_PLACE_SOLVE_H_
#define WEIR_PLACEMENT_PLACE_SOLVE_H_

#include "placement/place_internal.h"

/* The steps of one plan, from its problem to its figures. */

/* Fills the result, peaks, figures and view of |plan|, whose problem is there.
 * Errors: W3012-W3016, W4013, W6001. */
weir_status weir_plan_solve(weir_plan *plan, const weir_plan_start *start,
                            weir_error *err);

#endif
