/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/channel/dropped.h"

#include <inttypes.h>

#include "runtime/base/status.h"

/* A ring of the last dropped steps; the reasons of the last few are kept whole.
 * A step that leaves the ring takes with it all those below: steps grow, and
 * one that is older than so many dropped ones is under way nowhere. So a late
 * call fails, however late, and memory is bounded. Numbers of turns (from 2^63
 * on) are in no order: they only leave. A look costs one comparison while
 * nothing was dropped. */

static uint32_t held(const weir_dropped *d) {
  return d->count < WEIR_DROPPED_STEPS ? d->count : WEIR_DROPPED_STEPS;
}

void weir_dropped_add(weir_dropped *d, uint64_t step, const weir_error *why) {
  for (uint32_t i = 0; i < held(d); i++)
    if (d->steps[i] == step) return;
  if (step < d->below) return;
  uint64_t *place = &d->steps[d->count % WEIR_DROPPED_STEPS];
  if (d->count >= WEIR_DROPPED_STEPS && *place >> 63 == 0 && *place >= d->below)
    d->below = *place + 1;
  *place = step;
  d->why[d->count % WEIR_DROPPED_REASONS] = *why;
  /* The ring's places follow from |count|, which must not wrap to "empty". */
  if (++d->count == UINT32_MAX) d->count = UINT32_MAX - WEIR_DROPPED_STEPS + 1;
}

bool weir_dropped_find(const weir_dropped *d, uint64_t step, weir_error *why) {
  if (d->count == 0) return false;
  uint32_t n = held(d);
  for (uint32_t i = 1; i <= n; i++) {
    uint32_t at = d->count - i;
    if (d->steps[at % WEIR_DROPPED_STEPS] != step) continue;
    if (i <= WEIR_DROPPED_REASONS) {
      *why = d->why[at % WEIR_DROPPED_REASONS];
      return true;
    }
    break;
  }
  bool found = step < d->below;
  for (uint32_t i = 0; i < n && !found; i++) found = d->steps[i] == step;
  if (found)
    weir_fail(why, WEIR_W5005, NULL, "step %" PRIu64 " was given up earlier",
              step);
  return found;
}
