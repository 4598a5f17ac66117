/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_PLACE_WHAT_IF_H_
#define WEIR_PLACEMENT_PLACE_WHAT_IF_H_

#include "placement/place.h"

/* Changes to a plan's cluster and nodes, for questions. */

/* Applies |request->changes| to |*cluster|, which is replaced, and gives those
 * that concern nodes as wishes, in |arena|. Errors: W3020, W3040, W6001. */
weir_status weir_place_change(const weir_place_request *request,
                              weir_arena *arena, weir_cluster **cluster,
                              weir_place_wish *wishes, uint32_t *count,
                              weir_error *err);

/* The plan of |before| for |problem|, which has the same nodes and maybe other
 * devices and links, as it was: it may break a rule there. |*out| is NULL when
 * a node cannot be where it was. Errors: W6001. */
weir_status weir_place_carry(const weir_plan *before,
                             const weir_place_problem *problem,
                             weir_place_plan **out, weir_error *err);

#endif
