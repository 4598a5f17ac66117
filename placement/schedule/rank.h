/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_RANK_H_
#define WEIR_PLACEMENT_RANK_H_

#include "placement/schedule/schedule.h"

/* Priorities of list scheduling, and the order they give. */

/* |rank[n]|: the longest way from the start of n to the end of the graph. */
void weir_place_rank(const weir_place_problem *problem, weir_rank_rule rule,
                     int64_t *rank);

/* All nodes by falling |key|, predecessors first; ties by index.
 * |heap|: room for node_count numbers, |waiting| too. */
void weir_place_order(const weir_place_problem *problem, const int64_t *key,
                      uint32_t *heap, uint32_t *waiting, uint32_t *order);

#endif
