/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes have their turns in the order of their ranks, not of memory, so that
 * each would wait for its figures, then for the list of its inputs, then for
 * these. Each step here is AHEAD turns before the next one and finds what the
 * one before it has fetched. It changes no result. Cost: O(inputs) a node. */
#include "placement/schedule/schedule_fetch.h"

enum { AHEAD = 12 };

void weir_schedule_fetch(const weir_scheduler *s, const uint32_t *order,
                         uint32_t left) {
  const weir_place_problem *p = s->p;
  if (left > 3 * AHEAD) {
    uint32_t n = order[3 * AHEAD];
    __builtin_prefetch(&p->in_first[n]);
    __builtin_prefetch(&p->out_first[n]);
    __builtin_prefetch(&p->cost[(size_t)n * p->class_count]);
    __builtin_prefetch(&p->allowed[n]);
    __builtin_prefetch(&p->group[n]);
  }
  if (left > 2 * AHEAD)
    __builtin_prefetch(&p->in_tensor[p->in_first[order[2 * AHEAD]]]);
  if (left <= AHEAD) return;
  uint32_t n = order[AHEAD];
  for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1]; i++)
    __builtin_prefetch(&s->made[p->in_tensor[i]]);
}
