/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_PARTS_RING_RANKS_H_
#define PLACEMENT_PARTS_RING_RANKS_H_

#include "placement/lower/lower_ring.h"
#include "placement/parts/partition.h"
#include "runtime/base/vec.h"

/* The ranks of a partition's collectives. */

typedef struct weir_ring_rank {
  weir_lower_ring ring;
  weir_node_id node;
  uint32_t part;
} weir_ring_rank;

typedef WEIR_VEC(weir_ring_rank) weir_ring_ranks;

/* Adds all ranks of |graph|, cut as |partition|, to the empty |ranks|: by
 * group, then by rank, so that each group's first rank leads. false: out of
 * memory. The caller frees |ranks| in both cases. */
bool weir_ring_ranks_list(const weir_allocator *alloc, const weir_graph *graph,
                          const weir_partition *partition,
                          weir_ring_ranks *ranks);

#endif
