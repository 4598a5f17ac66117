/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_PARTS_INTERNAL_H_
#define PLACEMENT_PARTS_INTERNAL_H_

#include "placement/parts/parts.h"

/* Rows under way. */
typedef struct weir_parts_maker {
  const weir_allocator *alloc;
  weir_arena *arena; /* of |out| */
  const weir_placement *placement;
  const weir_graph *graph;
  const weir_partition *cut;
  weir_place_parts *out;
  weir_parts_part *parts;
} weir_parts_maker;

#endif
