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
  weir_cost_fit fit[2]; /* per class */
  weir_signer signer;   /* with measured costs only, like |key| */
  weir_strbuf key;
  weir_error *err;
} weir_lowering;

/* lower_units.c. false: out of memory. */
bool weir_lower_find_units(weir_lowering *l);
void weir_lower_join_units(weir_lowering *l);
uint32_t weir_lower_root(weir_lowering *l, uint32_t unit);

/* lower_rules.c: fills |allowed|. Errors: W3002, W3001, W3012, W6001. */
weir_status weir_lower_apply_rules(weir_lowering *l);

/* lower_cost.c: what unit |unit| costs, per class; its source is noted. Errors:
 * W2008, W6001. */
weir_status weir_lower_unit_cost(weir_lowering *l, uint32_t unit,
                                 int64_t *cost);

/* Bytes of a variable; 0 for other units. */
int64_t weir_lower_resident(const weir_lowering *l, uint32_t unit);

/* lower_ring.c: what node |id|, a rank of a collective, takes on devices of
 * each class. Errors: W2008. */
weir_status weir_lower_ring_cost(const weir_lowering *l, weir_node_id id,
                                 int64_t *cost);

#endif
