/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_CARRY_PLAN_H_
#define PLACEMENT_CARRY_PLAN_H_

#include "placement/place.h"
#include "runtime/base/strbuf.h"

/* Plans as bytes; carry_placing.h tells why. */

/* Appends |plan|. Errors: W6001. */
weir_status weir_plan_pack(const weir_plan *plan, weir_strbuf *out,
                           weir_error *err);

/* The plan of |bytes| for |problem|. Errors: W7051 (malformed, or another
 * problem's), W6001. */
weir_status weir_place_plan_unpack(const weir_allocator *alloc,
                                   const weir_place_problem *problem,
                                   weir_bytes bytes, weir_place_plan **out_plan,
                                   weir_error *err);

#endif
