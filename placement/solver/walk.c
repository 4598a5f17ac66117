/* SPDX-License-Identifier: Apache-2.0 */
/* Local search over priorities and devices. One move changes a few nodes'
 * priority or device and schedules again; worse plans are accepted for a while
 * (late acceptance, Burke and Bykov, EJOR 258 (2017) 70-78).
 *
 * A walk's moves depend on the plan that it set out from and on its own random
 * numbers, not on the budget or on the best plan: a longer search passes
 * through the same plans, so that it finds at least as good a one. Walks take
 * turns: one sets out from the best list. Where that is not a rank, its devices
 * are all set, and another sets out from a rank, where nodes choose theirs; and
 * one from a split of chains, where that is better than all lists. */
#include "placement/solver/walk.h"

#include <assert.h>
#include <string.h>

#include "placement/schedule/rank.h"
#include "placement/solve/chain.h"
#include "placement/solver/pack.h"
#include "runtime/base/mix.h"

enum {
  ASK_EVERY = 16,    /* moves between two looks at |stop| */
  CHAIN_NODES = 256, /* beyond, splits of chains take longer than the walk */
  CHAIN_ORDERS = 24
};

/* Moves a few nodes' priorities beside those of others. */
static void change_keys(weir_solver *s, weir_walk *w) {
  uint32_t count = s->p->node_count,
           changes = 1 + weir_mix_below(&w->random, 3);
  for (uint32_t i = 0; i < changes; i++) {
    uint32_t n = weir_mix_below(&w->random, count),
             other = weir_mix_below(&w->random, count);
    s->key[n] = s->key[other] + (weir_mix_next(&w->random) & 1 ? 1 : -1);
  }
}

/* Sends a node to a device, or lets it choose again. */
static void change_device(weir_solver *s, weir_walk *w) {
  uint32_t n = weir_mix_below(&w->random, s->p->node_count);
  uint32_t d = weir_mix_below(&w->random, s->p->device_count + 1);
  if (d == s->p->device_count ||
      weir_place_cost(s->p, n, d) == WEIR_PLACE_NO_KERNEL)
    s->device[n] = WEIR_PLACE_NONE;
  else
    s->device[n] = d;
}

static weir_status move(weir_solver *s, weir_walk *w, int64_t limit_ns,
                        bool *complete) {
  uint32_t count = s->p->node_count;
  memcpy(s->key, w->key, count * sizeof *s->key);
  memcpy(s->device, w->device, count * sizeof *s->device);
  if (s->reversed != NULL || (weir_mix_next(&w->random) & 1) != 0)
    change_keys(s, w);
  else if (s->filled)
    weir_regions_change(s->regions, &w->random, s->device);
  else
    change_device(s, w);
  WEIR_TRY(weir_solver_schedule(s, s->reversed != NULL ? 0 : limit_ns + 1,
                                complete));
  return s->reversed != NULL ? weir_solver_pack(s) : WEIR_OK;
}

/* One move of |w|. As good as now, or as MEMORY moves ago, is accepted. */
static weir_status step(weir_solver *s, weir_walk *w) {
  int64_t *late = &w->late_ns[w->moves++ % WEIR_SEARCH_MEMORY];
  int64_t limit = *late > w->now_ns ? *late : w->now_ns;
  uint32_t count = s->p->node_count;
  bool complete = false;
  WEIR_TRY(move(s, w, limit, &complete));
  if (complete && s->plan->makespan_ns <= limit) {
    w->now_ns = s->plan->makespan_ns;
    memcpy(w->key, s->key, count * sizeof *w->key);
    memcpy(w->device, s->device, count * sizeof *w->device);
    weir_solver_keep(s, "search");
  }
  *late = w->now_ns;
  return WEIR_OK;
}

static void walk_begin(weir_solver *s, int64_t now_ns, const int64_t *key,
                       const uint32_t *device) {
  uint32_t count = s->p->node_count;
  weir_walk *w = &s->walks[s->walk_count];
  memcpy(w->key, key, count * sizeof *key);
  memcpy(w->device, device, count * sizeof *device);
  w->now_ns = now_ns;
  w->random = s->options->seed + s->walk_count;
  for (int i = 0; i < WEIR_SEARCH_MEMORY; i++) w->late_ns[i] = now_ns;
  s->walk_count++;
}

/* The mean rank, with devices that nodes choose, if it makes a plan. */
static weir_status begin_rank(weir_solver *s) {
  bool complete = false;
  weir_place_rank(s->p, WEIR_RANK_MEAN, s->key);
  weir_solver_free_devices(s);
  WEIR_TRY(weir_solver_schedule(s, 0, &complete));
  if (complete) walk_begin(s, s->plan->makespan_ns, s->key, s->device);
  return WEIR_OK;
}

/* |split|: room for all splits; the first is the best. */
static weir_status split_chain(weir_solver *s, const weir_items *items,
                               uint32_t *split, bool *found) {
  uint32_t count = s->p->device_count;
  int64_t *cap = weir_alloc_array(s->alloc, count, sizeof *cap);
  if (cap == NULL) return weir_fail_memory(s->err, count * sizeof *cap);
  for (uint32_t d = 0; d < count; d++) cap[d] = s->p->devices[d].memory_bytes;
  weir_chain_options o = {.cap = cap, .orders = CHAIN_ORDERS};
  weir_chain_splits splits = {.device = split};
  weir_status status = weir_chain_split(items, &o, &splits, s->err);
  *found = splits.count > 0;
  weir_free(s->alloc, cap);
  return status;
}

/* Stretches of an order on the devices in turn: the best split for pipelines
 * (chain.h), and where branches of a graph are long for one batch too. */
static weir_status try_chain(weir_solver *s) {
  uint32_t count = s->p->node_count;
  weir_items *items = NULL;
  bool complete = false, found = false;
  WEIR_TRY(weir_items_create(s->alloc, s->p, &items, s->err));
  size_t room = (size_t)count * WEIR_CHAIN_SPLITS;
  uint32_t *split = weir_alloc_array(s->alloc, room, sizeof *split);
  weir_status status = split != NULL
                           ? split_chain(s, items, split, &found)
                           : weir_fail_memory(s->err, room * sizeof *split);
  for (uint32_t n = 0; n < count && found; n++)
    s->device[n] = split[items->of[n]];
  weir_free(s->alloc, split);
  weir_items_release(items);
  if (status != WEIR_OK || !found) return status;
  weir_place_rank(s->p, WEIR_RANK_MEAN, s->key);
  WEIR_TRY(weir_solver_schedule(s, s->best->makespan_ns, &complete));
  if (!complete) return WEIR_OK;
  walk_begin(s, s->plan->makespan_ns, s->key, s->device);
  weir_solver_keep(s, "chain split");
  return WEIR_OK;
}

weir_status weir_solver_set_out(weir_solver *s) {
  size_t n = (size_t)s->p->node_count + 1;
  for (int i = 0; i < WEIR_SEARCH_WALKS; i++) {
    weir_walk *w = &s->walks[i];
    w->key = weir_alloc_array(s->alloc, n, sizeof *w->key);
    w->device = weir_alloc_array(s->alloc, n, sizeof *w->device);
    if (w->key == NULL || w->device == NULL)
      return weir_fail_memory(s->err, n * sizeof *w->key);
  }
  if (s->listed) WEIR_TRY(begin_rank(s));
  if (s->listed) weir_solver_keep_starts(s);
  walk_begin(s, s->best->makespan_ns, s->kept_key, s->kept_device);
  if (s->reversed == NULL && s->p->node_count <= CHAIN_NODES &&
      !weir_schedule_is_capped(s->scheduler))
    WEIR_TRY(try_chain(s));
  return WEIR_OK;
}

weir_status weir_solver_walk(weir_solver *s, uint64_t last) {
  const weir_place_options *o = s->options;
  for (; s->moves < last; s->moves++) {
    if (s->best->makespan_ns <= s->bounds.best_ns) break;
    if (s->moves % ASK_EVERY == 0 && o->stop != NULL && o->stop(o->stop_self))
      break;
    WEIR_TRY(step(s, &s->walks[s->moves % s->walk_count]));
  }
  return WEIR_OK;
}
