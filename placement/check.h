/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_CHECK_H_
#define WEIR_PLACEMENT_CHECK_H_

#include "placement/plan.h"

/* Checks a plan against the model. */

/* Checks |plan| against the model from first principles; knows nothing of the
 * placers. Devices allowed, groups together, no overlap on a device or an
 * exclusive link, every tensor there before its use, copies no shorter than the
 * link takes, memory caps kept at every moment, makespan right. |peaks| (one
 * per device, may be NULL) gets the peak bytes. Errors: W3016 with the first
 * rule broken, W3013 for memory, W6001. */
weir_status weir_place_check(const weir_allocator *alloc,
                             const weir_place_problem *problem,
                             const weir_place_plan *plan, int64_t *peaks,
                             weir_error *err);

#endif
