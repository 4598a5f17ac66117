/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_LOWER_RING_H_
#define WEIR_PLACEMENT_LOWER_RING_H_

#include "placement/lower/lower_internal.h"

/* What the ranks of a collective cost. */

/* What node |id|, a rank of a collective, takes on devices of each class.
 * Errors: W2008. */
weir_status weir_lower_ring_cost(const weir_lowering *l, weir_node_id id,
                                 int64_t *cost);

#endif
