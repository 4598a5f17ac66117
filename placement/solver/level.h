/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_LEVEL_H_
#define PLACEMENT_LEVEL_H_

#include "placement/plan.h"

/* Problems with fewer devices inside a problem.
 *
 * Devices are alike, one kind, where they have the same class, cap and copy
 * load and the same nodes may be there. Level k of a problem has the first k
 * devices of each kind, without those where no node can be: it is the problem
 * that the cluster with so many devices would give. A search that solves all
 * levels never answers worse than for one device less. A request names all
 * devices of a kind or none of them, so that each level has a place for every
 * node. */

typedef struct weir_levels {
  const weir_allocator *alloc;
  const weir_place_problem *p;
  uint32_t *level; /* per device: the first that has it; 0: no one has */
  uint32_t count;  /* the last one */
  bool is_whole;   /* it has all devices: it is the problem itself */
} weir_levels;

/* |problem| is borrowed. |levels| is to be released also after a failure. O(
 * nodes * devices). Errors: W6001. */
weir_status weir_levels_create(const weir_allocator *alloc,
                               const weir_place_problem *problem,
                               weir_levels *levels, weir_error *err);
void weir_levels_release(weir_levels *levels);
/* Devices of level |k|. */
uint32_t weir_level_devices(const weir_levels *levels, uint32_t k);
/* The problem of level |k|, which shares its nodes with |levels->p| and is to
 * be released before. Errors: W6001. */
weir_status weir_level_problem(const weir_levels *levels, uint32_t k,
                               weir_place_problem **out_problem,
                               weir_error *err);
/* Makes |plan|, of level |from|, one of level |to|, which is higher. 0 is the
 * whole problem. */
void weir_level_lift(const weir_levels *levels, uint32_t from, uint32_t to,
                     const weir_place_problem *problem, weir_place_plan *plan);

#endif
