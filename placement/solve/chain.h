/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_CHAIN_H_
#define WEIR_PLACEMENT_CHAIN_H_

#include "placement/solve/load.h"

/* Splits a graph into stretches of an order, exactly. */

/* Items in an order, cut into stretches, one per device: exact for the order by
 * dynamic programming over items, in large graphs over blocks of them. The best
 * of up to 24 depth-first orders. Copies count as over the mean of all ways,
 * devices that are alike are taken in turn. |device| is filled where
 * |*out_found|. |cap| bytes per device. Errors: W6001. */
weir_status weir_chain_split(const weir_items *items, const int64_t *cap,
                             uint32_t *device, bool *out_found,
                             weir_error *err);

#endif
