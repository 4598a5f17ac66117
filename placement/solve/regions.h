/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_REGIONS_H_
#define WEIR_PLACEMENT_REGIONS_H_

#include "placement/solve/load.h"

/* Moves of whole regions between devices, for the local search under memory
 * caps. A node that moves alone cuts a chain twice; items that hang together
 * move the cut. */

typedef struct weir_regions weir_regions;

/* |items| is lent. Errors: W6001. */
weir_status weir_regions_create(const weir_items *items,
                                weir_regions **out_regions, weir_error *err);
void weir_regions_release(weir_regions *regions); /* NULL-safe */
/* Changes |device|, per node and NONE for none, for one region: an item, items
 * that hang together on one device, a stretch of an order, or two items that
 * change places. Resident bytes keep the caps if they kept them before; else,
 * and where nothing can move, |device| stays as it is and the answer is false.
 */
bool weir_regions_change(weir_regions *regions, uint64_t *random,
                         uint32_t *device);

#endif
