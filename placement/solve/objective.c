/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/solve/objective.h"

#include <assert.h>
#include <string.h>

#include "placement/check.h"
#include "placement/schedule/rank.h"
#include "placement/schedule/schedule.h"
#include "placement/solve/balance.h"
#include "placement/solve/chain.h"

/* Splits instead of schedules: for goals that a device's share decides (load,
 * memory, bytes moved), the time at which a node starts hardly matters. So
 * candidates are splits of items, from the chain program, from single devices
 * and from local search, and each is scheduled once to see whether it keeps the
 * caps, and its value.
 *
 * Invariant: |best| keeps the caps or |best_score| is INT64_MAX; it is never
 * worse than the plan that came. */

enum {
  CAP_ROUNDS = 4,
  ORDERS = 128,       /* of the chain program */
  SHORT = 32,         /* the part of all moves for each of its splits, */
  SHORT_MOVES = 50000 /* but no more */
};

/* Made from the list in placement/meson.build. */
extern const weir_place_objective *const weir_objectives[];
extern const size_t weir_objective_count;

const weir_place_objective *weir_place_objective_at(size_t i) {
  return i < weir_objective_count ? weir_objectives[i] : NULL;
}

const weir_place_objective *weir_place_objective_find(const char *name) {
  for (size_t i = 0; i < weir_objective_count; i++)
    if (strcmp(weir_objectives[i]->name, name) == 0) return weir_objectives[i];
  return NULL;
}

typedef struct improver {
  const weir_allocator *alloc;
  const weir_place_problem *p;
  const weir_place_options *options;
  const weir_place_objective *objective;
  weir_items *items;
  weir_scheduler *scheduler;
  weir_place_plan *plan, *best; /* |best| is the caller's */
  int64_t best_score;           /* INT64_MAX: over a cap */
  int64_t last_score;           /* of the split that was tried last */
  uint32_t *split, *best_split; /* per item */
  uint32_t *device;             /* per node */
  weir_chain_splits chains;
  int64_t *key, *cap, *load, *peaks;
  uint32_t *order, *heap, *waiting, *stamp;
  uint64_t moves;
  weir_error *err;
} improver;

/* ---- Candidates */

/* How bad |plan| is; INT64_MAX when a cap is broken. */
static weir_status score(improver *s, const weir_place_plan *plan,
                         int64_t *out) {
  weir_error why = WEIR_ERROR_INIT;
  weir_place_figures f = {.latency_ns = plan->makespan_ns};
  f.period_ns =
      weir_load_measure(s->p, plan->device, s->load, s->stamp, &f.moved_bytes);
  *out = INT64_MAX;
  weir_status status = weir_place_check(s->alloc, s->p, plan, s->peaks, &why);
  if (status == WEIR_RESOURCE_EXHAUSTED && strcmp(why.id, "W3013") == 0)
    return WEIR_OK;
  if (status != WEIR_OK)
    return s->err == NULL ? status : (*s->err = why, status);
  for (uint32_t d = 0; d < s->p->device_count; d++)
    if (s->peaks[d] > f.peak_bytes) f.peak_bytes = s->peaks[d];
  *out = s->objective->value(&f);
  assert(*out >= 0);
  return WEIR_OK;
}

static weir_status keep_if_better(improver *s, const char *placer) {
  int64_t got;
  WEIR_TRY(score(s, s->plan, &got));
  s->last_score = got;
  if (got > s->best_score ||
      (got == s->best_score && s->plan->makespan_ns >= s->best->makespan_ns))
    return WEIR_OK;
  for (uint32_t n = 0; n < s->p->node_count; n++)
    if (s->plan->reason[n] != WEIR_PLACE_ONLY)
      s->plan->reason[n] = WEIR_PLACE_SEARCH;
  WEIR_TRY(weir_place_plan_copy(s->best, s->plan, s->err));
  s->best->placer = placer;
  s->best_score = got;
  memcpy(s->best_split, s->split, s->items->count * sizeof *s->split);
  return WEIR_OK;
}

/* Schedules s->split, and keeps it if it is the best. */
static weir_status try_split(improver *s, const char *placer) {
  assert(s->items->count <= s->p->node_count);
  for (uint32_t n = 0; n < s->p->node_count; n++)
    s->device[n] = s->split[s->items->of[n]];
  weir_schedule_input input = {s->order, s->device, 0};
  s->last_score = INT64_MAX;
  weir_error why = WEIR_ERROR_INIT;
  weir_status status =
      weir_schedule_run(s->scheduler, &input, s->plan, NULL, &why);
  if (status == WEIR_OK) return keep_if_better(s, placer);
  /* No way between two devices, or no memory in this order: not this one. */
  if (strcmp(why.id, "W3014") == 0 || strcmp(why.id, "W3013") == 0)
    return WEIR_OK;
  return s->err == NULL ? status : (*s->err = why, status);
}

static weir_status try_single(improver *s, uint32_t device) {
  for (uint32_t i = 0; i < s->items->count; i++) {
    if (weir_items_cost(s->items, i, device) == WEIR_PLACE_NO_KERNEL)
      return WEIR_OK;
    s->split[i] = device;
  }
  return try_split(s, "one device");
}

/* The best splits into stretches are kept, to begin from. */
static weir_status try_chain(improver *s) {
  weir_chain_options o = {.cap = s->cap, .orders = ORDERS};
  size_t items = s->items->count;
  WEIR_TRY(weir_chain_split(s->items, &o, &s->chains, s->err));
  for (uint32_t k = 0; k < s->chains.count; k++) {
    memcpy(s->split, s->chains.device + k * items, items * sizeof *s->split);
    WEIR_TRY(try_split(s, "chain split"));
  }
  return WEIR_OK;
}

/* ---- Search */

/* Less room where the plan that was tried last went over a cap. A split knows
 * resident bytes only; the bytes of its tensors show when it is scheduled,
 * so the excess is taken from the cap and the split made anew. */
static void lower_caps(improver *s) {
  for (uint32_t d = 0; d < s->p->device_count; d++) {
    int64_t over = s->peaks[d] - s->p->devices[d].memory_bytes;
    if (over > 0) s->cap[d] = s->cap[d] > over ? s->cap[d] - over : 0;
  }
}

/* Local search from s->split, which becomes the best that was found. */
static weir_status balance(improver *s, int64_t bound, uint64_t limit,
                           uint64_t seed) {
  uint64_t moves, left = s->options->moves - s->moves;
  weir_balance_options o = {.goal = s->objective->goal,
                            .cap = s->cap,
                            .moves = limit < left ? limit : left,
                            .seed = s->options->seed + seed,
                            .bound = bound,
                            .stop = s->options->stop,
                            .stop_self = s->options->stop_self};
  if (o.moves == 0) return WEIR_OK;
  WEIR_TRY(weir_balance(s->items, &o, s->split, &moves, s->err));
  assert(moves <= o.moves);
  s->moves += moves;
  return try_split(s, "balance");
}

/* A short search from each chain split: the best one need not lead to the best
 * end. */
static weir_status search_chains(improver *s, int64_t bound) {
  size_t items = s->items->count;
  uint64_t limit = s->options->moves / SHORT;
  if (limit > SHORT_MOVES) limit = SHORT_MOVES;
  for (uint32_t k = 0; k < s->chains.count; k++) {
    if (s->best_score <= bound) break;
    memcpy(s->split, s->chains.device + k * items, items * sizeof *s->split);
    WEIR_TRY(balance(s, bound, limit, CAP_ROUNDS + k));
  }
  return WEIR_OK;
}

static weir_status search(improver *s, int64_t bound) {
  for (uint32_t round = 0; round < CAP_ROUNDS; round++) {
    int64_t before = s->best_score;
    memcpy(s->split, s->best_split, s->items->count * sizeof *s->split);
    if (s->moves >= s->options->moves) return WEIR_OK;
    WEIR_TRY(balance(s, bound, UINT64_MAX, round));
    if (s->last_score != INT64_MAX || s->best_score < before) return WEIR_OK;
    lower_caps(s);
  }
  return WEIR_OK;
}

/* ---- All together */

static weir_status begin(improver *s) {
  const weir_allocator *a = s->alloc;
  size_t n = (size_t)s->p->node_count + 1, d = s->p->device_count;
  WEIR_TRY(weir_items_create(a, s->p, &s->items, s->err));
  WEIR_TRY(weir_scheduler_create(a, s->p, &s->scheduler, s->err));
  WEIR_TRY(weir_place_plan_create(a, s->p, &s->plan, s->err));
  s->split = weir_alloc_array(a, n, sizeof *s->split);
  s->best_split = weir_alloc_array(a, n, sizeof *s->best_split);
  s->device = weir_alloc_array(a, n, sizeof *s->device);
  s->chains.device = weir_alloc_array(
      a, WEIR_CHAIN_SPLITS * ((size_t)s->items->count + 1), sizeof *s->split);
  s->key = weir_alloc_array(a, n, sizeof *s->key);
  s->order = weir_alloc_array(a, n, sizeof *s->order);
  s->heap = weir_alloc_array(a, n, sizeof *s->heap);
  s->waiting = weir_alloc_array(a, n, sizeof *s->waiting);
  s->cap = weir_alloc_array(a, d, sizeof *s->cap);
  s->load = weir_alloc_array(a, d, sizeof *s->load);
  s->peaks = weir_alloc_array(a, d, sizeof *s->peaks);
  s->stamp = weir_alloc_array(a, d, sizeof *s->stamp);
  if (s->split == NULL || s->chains.device == NULL || s->best_split == NULL ||
      s->device == NULL || s->key == NULL || s->order == NULL ||
      s->heap == NULL || s->waiting == NULL || s->cap == NULL ||
      s->load == NULL || s->peaks == NULL || s->stamp == NULL)
    return weir_fail_memory(s->err, n * sizeof *s->key);
  weir_place_rank(s->p, WEIR_RANK_MEAN, s->key);
  weir_place_order(s->p, s->key, s->heap, s->waiting, s->order);
  for (size_t i = 0; i < d; i++) s->cap[i] = s->p->devices[i].memory_bytes;
  for (uint32_t i = 0; i < s->p->node_count; i++)
    s->best_split[s->items->of[i]] = s->best->device[i];
  return WEIR_OK;
}

static void end(improver *s) {
  const weir_allocator *a = s->alloc;
  weir_items_release(s->items);
  weir_scheduler_release(s->scheduler);
  weir_place_plan_release(s->plan);
  weir_free(a, s->split);
  weir_free(a, s->best_split);
  weir_free(a, s->device);
  weir_free(a, s->chains.device);
  weir_free(a, s->key);
  weir_free(a, s->order);
  weir_free(a, s->heap);
  weir_free(a, s->waiting);
  weir_free(a, s->cap);
  weir_free(a, s->load);
  weir_free(a, s->peaks);
  weir_free(a, s->stamp);
}

static weir_status improve(improver *s, const weir_place_bounds *bounds) {
  bool seen[WEIR_PLACE_CLASSES] = {false};
  WEIR_TRY(begin(s));
  WEIR_TRY(score(s, s->best, &s->best_score));
  WEIR_TRY(try_chain(s));
  for (uint32_t d = 0; d < s->p->device_count; d++)
    if (!seen[s->p->devices[d].cls]) {
      seen[s->p->devices[d].cls] = true;
      WEIR_TRY(try_single(s, d));
    }
  int64_t bound = s->objective->floor == NULL ? 0 : s->objective->floor(bounds);
  WEIR_TRY(search_chains(s, bound));
  return search(s, bound);
}

weir_status weir_place_improve(const weir_allocator *alloc,
                               const weir_place_problem *problem,
                               const weir_place_objective *objective,
                               const weir_place_options *options,
                               weir_place_result *result, weir_error *err) {
  if (objective->goal == NULL || problem->node_count == 0) return WEIR_OK;
  improver s = {.alloc = alloc,
                .p = problem,
                .options = options,
                .objective = objective,
                .best = result->plan,
                .err = err};
  weir_status status = improve(&s, &result->bounds);
  result->moves += s.moves;
  end(&s);
  return status;
}

weir_status weir_place_value(const weir_allocator *alloc,
                             const weir_place_problem *problem,
                             const weir_place_objective *objective,
                             const weir_place_plan *plan, int64_t *out_value,
                             weir_error *err) {
  size_t d = problem->device_count;
  improver s = {
      .alloc = alloc, .p = problem, .objective = objective, .err = err};
  s.load = weir_alloc_array(alloc, d, sizeof *s.load);
  s.peaks = weir_alloc_array(alloc, d, sizeof *s.peaks);
  s.stamp = weir_alloc_array(alloc, d, sizeof *s.stamp);
  weir_status status = s.load == NULL || s.peaks == NULL || s.stamp == NULL
                           ? weir_fail_memory(err, d * sizeof *s.load)
                           : score(&s, plan, out_value);
  weir_free(alloc, s.load);
  weir_free(alloc, s.peaks);
  weir_free(alloc, s.stamp);
  return status;
}
