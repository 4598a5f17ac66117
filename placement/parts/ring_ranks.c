/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/parts/ring_ranks.h"

#include <stdlib.h>

static int by_rank(const void *a, const void *b) {
  const weir_ring_rank *x = a, *y = b;
  if (x->ring.group != y->ring.group)
    return x->ring.group < y->ring.group ? -1 : 1;
  if (x->ring.rank != y->ring.rank) return x->ring.rank < y->ring.rank ? -1 : 1;
  return (x->node > y->node) - (x->node < y->node);
}

bool weir_ring_ranks_list(const weir_allocator *alloc, const weir_graph *graph,
                          const weir_partition *partition,
                          weir_ring_ranks *ranks) {
  for (uint32_t i = 0; i < partition->order_count; i++) {
    weir_node_id id = partition->order[i];
    weir_ring_rank r = {.node = id, .part = partition->part_of[id]};
    if (graph->nodes[id].op->instr != WEIR_INSTR_COLLECTIVE ||
        !weir_lower_ring_of(graph, id, &r.ring))
      continue;
    if (!weir_vec_push(alloc, ranks, r)) return false;
  }
  if (ranks->count > 0)
    qsort(ranks->items, ranks->count, sizeof *ranks->items, by_rank);
  return true;
}
