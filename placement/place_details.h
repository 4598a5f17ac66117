/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_PLACE_DETAILS_H_
#define PLACEMENT_PLACE_DETAILS_H_

#include "placement/parts/parts.h"
#include "placement/place.h"

/* Details for readers of a plan, which a compiler does not need: made at the
 * first request and kept with the plan. */

typedef struct weir_plan_details {
  weir_place_parts *parts;
  uint32_t *edge_copy; /* per edge of |parts|: the plan's copy, or NONE */
} weir_plan_details;

/* Lent by |plan|; NULL for an instance's. Any number of threads may ask at
 * once. Errors: W6001. */
weir_status weir_plan_details_get(const weir_plan *plan,
                                  const weir_plan_details **out_details,
                                  weir_error *err);
void weir_plan_details_release(const weir_allocator *alloc,
                               weir_plan_details *details); /* NULL-safe */

#endif
