/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_FILLS_H_
#define WEIR_PLACEMENT_FILLS_H_

#include "placement/solve/load.h"

/* Devices for all items at once, where memory caps matter.
 *
 * A list scheduler decides about a group when it meets the group's first node,
 * mostly weights that cost nothing anywhere, and about a tensor without knowing
 * what else must still find room. A fill looks at whole items and their bytes:
 * weights, outputs and copies that a device receives. The nodes are then
 * scheduled by rank with devices fixed.
 *
 * Sources: m-TOPO, m-ETF and m-SCT (here its favourite children by rule, not by
 * linear program) are of Jeon et al., Baechi, SoCC 2020. */

typedef struct weir_fills weir_fills;

/* Whether there is a way between every two devices: fills do not look. */
bool weir_fills_fit(const weir_place_problem *problem);
/* |items| is lent. Errors: W6001. */
weir_status weir_fills_create(const weir_items *items, weir_fills **out_fills,
                              weir_error *err);
void weir_fills_release(weir_fills *fills); /* NULL-safe */
/* Fills |device|, per node, by the |k|-th fill: along orders of items into one
 * device after the other, the fastest class first; on the device where an item
 * can begin or end first; beside the parent whose dearest tensor it reads; and
 * stretches whose work and copies are least in sum. False: not all items found
 * room. NULL as |*name| after the last. */
bool weir_fills_make(weir_fills *fills, uint32_t k, uint32_t *device,
                     const char **name);

#endif
