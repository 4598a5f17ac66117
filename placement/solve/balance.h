/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_BALANCE_H_
#define WEIR_PLACEMENT_BALANCE_H_

#include "placement/solve/load.h"

/* Improves a split by local search. */

/* Local search over any splits, contiguous or not, from |device|, which becomes
 * the best that was found. One move sends an item, or an item and its
 * neighbours on the same device, to where a neighbour is, or swaps two; worse
 * splits are accepted less and less (threshold accepting, Dueck and Scheuer, J.
 * Comput. Phys. 90 (1990) 161-175). Does nothing on more than
 * WEIR_BALANCE_DEVICES devices. |device| must be allowed. Errors: W6001. */
weir_status weir_balance(const weir_items *items,
                         const weir_balance_options *options, uint32_t *device,
                         uint64_t *out_moves, weir_error *err);

#endif
