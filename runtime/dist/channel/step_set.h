/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_STEP_SET_H_
#define WEIR_DIST_STEP_SET_H_

#include <stdbool.h>
#include <stdint.h>

/* Steps that are over: all below a number, and a ring of the last others. A
 * step that leaves the ring takes with it all below it: steps grow, and one so
 * old is under way nowhere. Numbers from 2^63 on, of turns of loops, are in no
 * order: they only leave. Memory is bounded however long a session is. */

enum { WEIR_STEP_SET_ITEMS = 64 };

/* Zero at the beginning. */
typedef struct weir_step_set {
  uint64_t below;
  uint32_t count, next; /* of |items|; the place that is written next */
  uint64_t items[WEIR_STEP_SET_ITEMS];
} weir_step_set;

static inline bool weir_step_set_has(const weir_step_set *set, uint64_t step) {
  if (step < set->below) return true;
  for (uint32_t i = 0; i < set->count; i++)
    if (set->items[i] == step) return true;
  return false;
}

/* Counts all steps below |step|, less than 2^63, as over. */
static inline void weir_step_set_below(weir_step_set *set, uint64_t step) {
  if (step > set->below) set->below = step;
}

static inline void weir_step_set_add(weir_step_set *set, uint64_t step) {
  if (weir_step_set_has(set, step)) return;
  uint64_t *place = &set->items[set->next];
  if (set->count == WEIR_STEP_SET_ITEMS && *place >> 63 == 0)
    weir_step_set_below(set, *place + 1);
  *place = step;
  set->next = (set->next + 1) % WEIR_STEP_SET_ITEMS;
  if (set->count < WEIR_STEP_SET_ITEMS) set->count++;
}

#endif
