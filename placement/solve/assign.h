/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_ASSIGN_H_
#define PLACEMENT_ASSIGN_H_

#include "placement/solve/placer.h"

/* Placers by rules that look at no cost.
 *
 * A rule is asked for the device of each node in order, of a group once, at its
 * first node; all nodes of the group get its answer. The nodes are then
 * scheduled by mean rank. */

/* Where a rule stands. */
typedef struct weir_assigner {
  const weir_place_problem *p;
  uint64_t *may;    /* per group: devices that all of it may have */
  uint32_t *chosen; /* per group */
  uint64_t random;  /* of weir_mix_next; begins as the seed */
  uint32_t next;    /* the rule's own */
} weir_assigner;

typedef struct weir_assign_rule {
  const char *label; /* the plan's `placer`: "round robin" */
  /* The device of node |node|; NONE: there is none. */
  uint32_t (*choose)(weir_assigner *a, uint32_t node);
} weir_assign_rule;

/* Whether |node|, and all of its group, may have |device|. */
bool weir_assign_may(const weir_assigner *a, uint32_t node, uint32_t device);
/* The |skip|-th device that |node| may have, counted from |from| and around;
 * NONE: there are not so many. */
uint32_t weir_assign_pick(const weir_assigner *a, uint32_t node, uint32_t from,
                          uint32_t skip);

/* Places by |rule|: the body of a placer's solve. Errors: W3012 (a group that
 * no device may have), W3013, W3014, W6001. */
weir_status weir_assign_solve(const weir_assign_rule *rule,
                              const weir_allocator *alloc,
                              const weir_place_problem *problem,
                              const weir_place_options *options,
                              weir_place_result *out, weir_error *err);

#endif
