/* SPDX-License-Identifier: Apache-2.0 */
/* The portfolio of a search: list schedules by several ranks and rules,
 * everything on one device, a plan that is given, and where caps matter plans
 * that spare memory. Members that cannot be better are left out. Invariant:
 * kept_key and kept_device are of |best|. */
#include "placement/solver/portfolio.h"

#include <string.h>

#include "placement/schedule/rank.h"
#include "placement/solve/fills.h"
#include "placement/solve/lists.h"
#include "placement/solve/rescue.h"
#include "placement/solver/pack.h"
#include "runtime/base/table.h"

static weir_status try_rank(weir_solver *s, weir_rank_rule rule) {
  static const char *const names[] = {[WEIR_RANK_MEAN] = "rank mean",
                                      [WEIR_RANK_BEST] = "rank best",
                                      [WEIR_RANK_WORST] = "rank worst"};
  WEIR_TABLE_OF(names, WEIR_RANK_RULES);
  bool complete = false;
  weir_place_rank(s->p, rule, s->key);
  WEIR_TRY(weir_solver_schedule(s, s->best->makespan_ns, &complete));
  if (complete) weir_solver_keep(s, names[rule]);
  return WEIR_OK;
}

/* Ranks that cannot differ from the mean one are left out. */
static weir_status try_ranks(weir_solver *s) {
  bool one = s->p->class_count == 1;
  if (!one || !weir_solver_copies_are_free(s->p))
    WEIR_TRY(try_rank(s, WEIR_RANK_BEST));
  return one ? WEIR_OK : try_rank(s, WEIR_RANK_WORST);
}

static weir_status try_numbers(weir_solver *s) {
  bool complete = false;
  for (uint32_t n = 0; n < s->p->node_count; n++) s->key[n] = -(int64_t)n;
  WEIR_TRY(weir_solver_schedule(s, s->best->makespan_ns, &complete));
  if (complete) weir_solver_keep(s, "as numbered");
  return WEIR_OK;
}

/* Everything on |device|, where that is possible. It takes the sum of all
 * costs, so that a longer one need not be made. */
static weir_status try_single(weir_solver *s, uint32_t device) {
  int64_t sum = 0;
  for (uint32_t n = 0; n < s->p->node_count; n++) {
    int64_t cost = weir_place_cost(s->p, n, device);
    if (cost == WEIR_PLACE_NO_KERNEL || cost >= s->best->makespan_ns - sum)
      return WEIR_OK;
    sum += cost;
  }
  for (uint32_t n = 0; n < s->p->node_count; n++) s->device[n] = device;
  bool complete = false;
  weir_status status = weir_solver_schedule(s, s->best->makespan_ns, &complete);
  if (status == WEIR_OK && complete) weir_solver_keep(s, "one device");
  weir_solver_free_devices(s);
  return status;
}

/* One device of each class: the others are worth the same. */
static weir_status try_singles(weir_solver *s) {
  bool seen[WEIR_PLACE_CLASSES] = {false};
  for (uint32_t d = 0; d < s->p->device_count; d++) {
    uint32_t c = s->p->devices[d].cls;
    if (seen[c]) continue;
    seen[c] = true;
    WEIR_TRY(try_single(s, d));
  }
  return WEIR_OK;
}

static weir_status try_given(weir_solver *s) {
  const weir_place_plan *given = s->options->given;
  if (given == NULL || given->node_count != s->p->node_count) return WEIR_OK;
  for (uint32_t n = 0; n < s->p->node_count; n++) {
    s->key[n] = -given->start_ns[n];
    s->device[n] = given->device[n];
  }
  bool complete = false;
  weir_status status = weir_solver_schedule(s, s->best->makespan_ns, &complete);
  if (status == WEIR_OK && complete) weir_solver_keep(s, "as given");
  weir_solver_free_devices(s);
  return status;
}

/* Where caps matter: devices for whole groups, and nodes by rank. */
static weir_status try_fills(weir_solver *s) {
  weir_fills *fills = NULL;
  const char *name = NULL;
  WEIR_TRY(weir_items_create(s->alloc, s->p, &s->items, s->err));
  WEIR_TRY(weir_regions_create(s->items, &s->regions, s->err));
  WEIR_TRY(weir_fills_create(s->items, &fills, s->err));
  weir_place_rank(s->p, WEIR_RANK_MEAN, s->key);
  weir_status status = WEIR_OK;
  int64_t before = s->best->makespan_ns;
  for (uint32_t k = 0; status == WEIR_OK; k++) {
    bool fits = weir_fills_make(fills, k, s->device, &name), complete = false;
    if (name == NULL) break;
    if (fits) status = weir_solver_schedule(s, s->best->makespan_ns, &complete);
    if (status == WEIR_OK && complete) weir_solver_keep(s, name);
  }
  weir_fills_release(fills);
  s->filled = s->best->makespan_ns < before;
  s->listed &= !s->filled;
  weir_solver_free_devices(s);
  return status;
}

/* Where caps matter: plans that spare memory. There must be one in the end. */
static weir_status try_rescue(weir_solver *s) {
  weir_place_rescue r = {
      s->alloc, s->p, s->scheduler,
      s->p->node_count > WEIR_SEARCH_PACK_NODES || s->options->rough, false};
  int64_t before = s->best->makespan_ns;
  bool found = false;
  if (before != INT64_MAX && r.enough) return WEIR_OK;
  WEIR_TRY(weir_place_rescue_run(&r, &s->best, &s->plan, &found, s->err));
  if (!found) return weir_place_explain_short(s->alloc, s->p, s->err);
  if (s->best->makespan_ns == before) return WEIR_OK;
  s->spill = r.spilled;
  s->filled = false;
  weir_solver_keep_starts(s);
  return WEIR_OK;
}

/* Other lists, for small problems with unequal devices or copies that cost. */
static weir_status try_lists(weir_solver *s) {
  weir_status status = WEIR_OK;
  if (!weir_place_list_fits(s->p)) return WEIR_OK;
  for (int r = 0; r < WEIR_LIST_RULES && status == WEIR_OK; r++) {
    weir_list_rule rule = (weir_list_rule)r;
    bool complete = false;
    status = weir_place_list(s->alloc, s->p, rule, s->key, s->device, s->err);
    if (status == WEIR_OK)
      status = weir_solver_schedule(s, s->best->makespan_ns, &complete);
    if (status == WEIR_OK && complete) {
      weir_solver_keep(s, weir_place_list_name(rule));
      s->listed = true;
    }
  }
  weir_solver_free_devices(s);
  return status;
}

/* The bound is known after the first: a plan that meets it ends the work. */
weir_status weir_solver_portfolio(weir_solver *s) {
  weir_place_bounds *bounds = &s->bounds;
  bool large = s->p->node_count > WEIR_SEARCH_PACK_NODES;
  weir_solver_free_devices(s);
  WEIR_TRY(try_rank(s, WEIR_RANK_MEAN));
  if (large) {
    WEIR_TRY(
        weir_place_bound(s->alloc, s->p, s->best->makespan_ns, bounds, s->err));
    if (s->best->makespan_ns <= bounds->best_ns) return WEIR_OK;
  }
  WEIR_TRY(try_ranks(s));
  if (!large) WEIR_TRY(try_numbers(s));
  WEIR_TRY(try_singles(s));
  WEIR_TRY(try_lists(s));
  WEIR_TRY(try_given(s));
  if (weir_schedule_is_capped(s->scheduler)) {
    if (!large && !s->options->rough && weir_fills_fit(s->p))
      WEIR_TRY(try_fills(s));
    WEIR_TRY(try_rescue(s));
  }
  if (s->reversed != NULL) {
    memcpy(s->key, s->kept_key, s->p->node_count * sizeof *s->key);
    WEIR_TRY(weir_solver_schedule(s, 0, NULL));
    WEIR_TRY(weir_solver_pack(s));
    weir_solver_keep(s, "packed");
  }
  /* The energy test, which takes longest, stops at the plan that is known. */
  return large || s->options->rough
             ? WEIR_OK
             : weir_place_bound(s->alloc, s->p,
                                s->is_lower ? 0 : s->best->makespan_ns, bounds,
                                s->err);
}
