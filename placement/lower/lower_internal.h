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

/* ---- Sets of devices */

static inline uint64_t *weir_lower_set(const weir_lowering *l, uint32_t unit) {
  return l->allowed + (size_t)unit * l->words;
}

static inline bool weir_lower_set_is_empty(const weir_lowering *l,
                                           const uint64_t *set) {
  for (uint32_t w = 0; w < l->words; w++)
    if (set[w] != 0) return false;
  return true;
}

static inline void weir_lower_set_add(uint64_t *set, uint32_t device) {
  set[device >> 6] |= UINT64_C(1) << (device & 63);
}

static inline bool weir_lower_set_has(const uint64_t *set, uint32_t device) {
  return (set[device >> 6] >> (device & 63)) & 1;
}

#endif
