/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_LOWER_INTERNAL_H_
#define PLACEMENT_LOWER_INTERNAL_H_

#include "placement/lower/lower.h"
#include "placement/lower/signature.h"

/* A lowering under way. */
typedef struct weir_lowering {
  const weir_allocator *alloc;
  weir_arena *arena;
  const weir_graph *graph;
  const weir_cluster *cluster;
  const weir_lower_options *options;
  weir_unit *units;
  weir_node_id *members;
  uint32_t *unit_of;
  uint32_t unit_count, member_total;
  weir_node_id *last_member; /* per fusion group */
  uint32_t *parent;          /* per unit: together with; root: itself */
  /* Per unit: devices it may use, |words| words each. */
  uint64_t *allowed;
  uint32_t words;
  int64_t *load; /* per device: bytes of variables that rules put there */
  weir_cost_fit fit[WEIR_PLACE_CLASSES];
  weir_signer signer; /* with measured costs only, like |key| */
  weir_strbuf key;
  weir_error *err;
} weir_lowering;

/* Bytes of a variable; 0 for other units. */
int64_t weir_lower_resident(const weir_lowering *l, uint32_t unit);

#endif
