/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_LOWER_RING_H_
#define WEIR_PLACEMENT_LOWER_RING_H_

#include "runtime/graph/graph.h"

typedef struct weir_lowering weir_lowering;

/* The ranks of a collective: their steps and costs. */

/* A rank: its ranks stand in a ring, and in each of |turns| a rank sends
 * |part_bytes| to the next. */
typedef struct weir_lower_ring {
  int64_t group, rank, ranks;
  int64_t elements; /* of the larger side */
  int64_t part_bytes, turns;
} weir_lower_ring;

/* The part of node |id|, a rank of a collective, in its ring. false: a shape is
 * not known. */
bool weir_lower_ring_of(const weir_graph *graph, weir_node_id id,
                        weir_lower_ring *out);

/* The cost of node |id|, a rank of a collective, on devices of each class.
 * Errors: W2008. */
weir_status weir_lower_ring_cost(const weir_lowering *l, weir_node_id id,
                                 int64_t *cost);

#endif
