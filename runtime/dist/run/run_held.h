/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_RUN_HELD_H_
#define WEIR_DIST_RUN_HELD_H_

#include "runtime/dist/run/run_internal.h"

/* Values of one moment, held for a checkpoint: counted by the engine's list and
 * by each request. */

typedef struct run_held {
  struct run_held *next;
  int refs; /* under the engine's lock */
  uint64_t number;
  const weir_graph *graph; /* the bundle's */
  uint32_t count;
  uint32_t *nodes;
  weir_tensor **tensors;
} run_held;

void run_held_unref(run_engine *e, run_held *h); /* NULL-safe */
/* One more user of what is held as |number|; NULL: nothing is. */
run_held *run_held_get(run_engine *e, uint64_t number);
/* Into the list, with the reference of the caller. */
void run_held_add(run_engine *e, run_held *h);
/* Out of the list, if it is there. */
void run_held_drop(run_engine *e, uint64_t number);
/* Forgets all; no work is under way. */
void run_drop_held(run_engine *e);
/* The place of |node| in |h|, looked for from |from| on, all around;
 * UINT32_MAX: it is not held. */
uint32_t run_held_find(const run_held *h, uint32_t node, uint32_t from);

#endif
