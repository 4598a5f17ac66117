/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_PLAN_READ_H_
#define WEIR_PLACEMENT_PLAN_READ_H_

#include "placement/plan.h"

/* Reads a plan that was written as JSON. */

/* Reads a plan that weir_place_write_json wrote, for |problem|. Errors: W3016
 * (another problem's, or not a plan), W4013, W6001. */
weir_status weir_place_plan_read(const weir_allocator *alloc,
                                 const weir_place_problem *problem,
                                 weir_sv json, const char *name,
                                 weir_place_plan **out_plan, weir_error *err);

#endif
