/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_PLAN_RETIME_H_
#define PLACEMENT_PLAN_RETIME_H_

#include "placement/plan.h"

/* A plan under other costs: devices, copies and the order on each device and
 * link stay, the times are new. */

/* Whether a node or a copy of |plan| takes another time than |problem| says;
 * false where a node may not be on its device or ends before it starts, which
 * no other times mend. The time that a sender works is not in a plan: where a
 * copy has some, and the checker does not take the plan, as |is_sound| says,
 * the plan counts as one of other times. */
bool weir_place_plan_has_other_times(const weir_place_problem *problem,
                                     const weir_place_plan *plan,
                                     bool is_sound);
/* Times |plan| anew: each node and copy as early as its inputs and those before
 * it on its device or link allow. O(copies^2) at worst. Errors: W6001. */
weir_status weir_place_plan_retime(const weir_allocator *alloc,
                                   const weir_place_problem *problem,
                                   weir_place_plan *plan, weir_error *err);

#endif
