/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_RANK_H_
#define WEIR_PLACEMENT_RANK_H_

#include "placement/schedule/schedule.h"

/* Priorities of list scheduling, and the order they give. */

/* |rank[n]|: the longest way from the start of n to the end of the graph. */
void weir_place_rank(const weir_place_problem *problem, weir_rank_rule rule,
                     int64_t *rank);

/* |tail[n]|: no plan ends sooner than so long after the end of n: the longest
 * way from there, each node at its cheapest, no copies. |device|: the cost is
 * that of each node's device, and copies between different devices count; may
 * be NULL. */
void weir_place_tails(const weir_place_problem *problem, const uint32_t *device,
                      int64_t *tail);
/* The same for one node that is on |on|, of the tails of its successors. */
int64_t weir_place_tail_of(const weir_place_problem *problem,
                           const uint32_t *device, const int64_t *tail,
                           uint32_t node, uint32_t on);

/* All nodes by falling |key|, predecessors first; ties by index.
 * |heap|: room for node_count numbers, |waiting| too. */
void weir_place_order(const weir_place_problem *problem, const int64_t *key,
                      uint32_t *heap, uint32_t *waiting, uint32_t *order);

#endif
