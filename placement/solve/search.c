/* SPDX-License-Identifier: Apache-2.0 */
/* The search: a solver for each level of the problem, and rounds; before them,
 * where nodes are many, clusters of nodes.
 *
 * Two things are promised up to 4,096 nodes. More moves give no worse a plan,
 * and one device more that is like the others gives no worse a plan. Both hold
 * by construction: what a level's solver does up to its n-th move depends on
 * that level alone (solver.h), and the answer for d devices and b moves is the
 * least of what the levels up to d have found after b moves each. A level whose
 * own bound is not below a plan that is known already cannot change that least,
 * and is left out.
 *
 * The descent has to keep the promises too. It runs after full rounds only,
 * which end at fixed numbers of moves, from the level with the fewest devices
 * on, and each level's begins with the better of its own plan and the one of
 * the level before: so y(d, round) <= y(d - 1, round), and since a plan that is
 * kept is never given up, y(d, round) <= y(d, round - 1). */
#include "placement/solve/search.h"

#include <assert.h>
#include <string.h>

#include "placement/schedule/rank.h"
#include "placement/solve/exact.h"
#include "placement/solve/levels/multilevel.h"
#include "placement/solver/descend.h"
#include "placement/solver/level.h"
#include "placement/solver/portfolio.h"
#include "placement/solver/walk.h"

enum {
  NODE_SCHEDULES = 1100000, /* of a search without a budget, per level */
  LEAST_MOVES = 6,          /* of the largest */
  MOST_MOVES = 110000,
  FEW_MOVES = 1000,    /* of a first round beyond */
  FIRST_STEPS = 20000, /* of the exact search, before the local one */
  LAST_STEPS = 200000, /* and after it */
  LEVELS = 8           /* with up to so many devices of a kind, and the last */
};

/* ---- Budgets. Full rounds end at 1, 5/4, 6/4, 7/4, 2, 10/4 ... times the
 * moves that a search without a budget makes. */

uint64_t weir_place_default_moves(const weir_place_problem *p) {
  if (p->node_count == 0) return 0;
  uint64_t moves = NODE_SCHEDULES / p->node_count;
  if (moves < LEAST_MOVES) moves = LEAST_MOVES;
  return moves > MOST_MOVES ? MOST_MOVES : moves;
}

static uint64_t round_end(const weir_place_problem *p, uint32_t round) {
  const uint64_t quarters = 4 + round % 4, doubled = round / 4;
  uint64_t moves = weir_place_default_moves(p), end;
  if (moves == 0) moves = FEW_MOVES;
  if (doubled > 40 || __builtin_mul_overflow(moves, quarters << doubled, &end))
    return UINT64_MAX;
  return end / 4;
}

/* ---- Levels. Solver 0 is that of all devices. */

typedef struct search {
  weir_levels levels;
  weir_place_problem *problems[LEVELS + 1];
  weir_solver solvers[LEVELS + 1];
  uint32_t level[LEVELS + 1]; /* of a solver; 0: the problem itself */
  uint32_t count;             /* solvers, the first has all devices */
  int64_t work_ns;            /* of all nodes, each at its cheapest */
  const weir_allocator *alloc;
  const weir_place_problem *p;
  const weir_place_options *options;
  weir_place_options lower; /* the same without a plan that is given */
  weir_error *err;
} search;

static int64_t least_work(const weir_place_problem *p) {
  int64_t sum = 0;
  for (uint32_t n = 0; n < p->node_count; n++) {
    int64_t least = INT64_MAX;
    for (uint32_t c = 0; c < p->class_count; c++)
      if (p->cost[(size_t)n * p->class_count + c] < least)
        least = p->cost[(size_t)n * p->class_count + c];
    if (__builtin_add_overflow(sum, least, &sum)) return 0;
  }
  return sum;
}

/* The shortest step of all solvers. */
static int64_t least_step(const search *v) {
  int64_t least = INT64_MAX;
  for (uint32_t i = 0; i < v->count; i++)
    if (v->solvers[i].best->makespan_ns < least)
      least = v->solvers[i].best->makespan_ns;
  return least;
}

/* Whether a plan of |level| can be shorter than all that are known. */
static bool can_help(const search *v, uint32_t level) {
  uint32_t devices = weir_level_devices(&v->levels, level);
  int64_t area = v->work_ns / devices + (v->work_ns % devices != 0);
  return area < least_step(v);
}

static bool can_solver_help(const search *v, uint32_t i) {
  return i == 0 || (v->solvers[i].bounds.best_ns < least_step(v) &&
                    can_help(v, v->level[i]));
}

static bool is_at_bound(const search *v) {
  return v->solvers[0].best->makespan_ns <= v->solvers[0].bounds.best_ns;
}

/* Adds the solver of |level| and runs its portfolio. */
static weir_status add_solver(search *v, uint32_t level) {
  uint32_t i = v->count;
  weir_solver *s = &v->solvers[i];
  const weir_place_problem *p = v->p;
  assert(i <= LEVELS);
  if (level != 0) {
    WEIR_TRY(weir_level_problem(&v->levels, level, &v->problems[i], v->err));
    p = v->problems[i];
  }
  *s = (weir_solver){.alloc = v->alloc,
                     .p = p,
                     .options = level == 0 ? v->options : &v->lower,
                     .is_lower = i > 0,
                     .err = v->err};
  v->level[i] = level;
  weir_status status = weir_solver_begin(s);
  if (status == WEIR_OK) status = weir_solver_portfolio(s);
  if (status != WEIR_OK) {
    weir_solver_end(s);
    weir_place_problem_release(v->problems[i]);
    v->problems[i] = NULL; /* the next level takes its place */
    return status;
  }
  s->first_ns = s->best->makespan_ns;
  if (i == 0 && v->options->progress != NULL)
    v->options->progress->bound_ns = s->bounds.best_ns;
  v->count++;
  return WEIR_OK;
}

/* A level that has no plan within the caps, or no way, is none. */
static weir_status add_lower(search *v, uint32_t level) {
  weir_error why = WEIR_ERROR_INIT, *err = v->err;
  v->err = &why;
  weir_status s = add_solver(v, level);
  v->err = err;
  if (s == WEIR_OK) v->solvers[v->count - 1].err = err;
  if (s == WEIR_OK || strcmp(why.id, "W6001") != 0) return WEIR_OK;
  weir_error_copy(err, &why);
  return s;
}

/* Where memory is short, a device that can run nothing still holds tensors. */
static weir_status find_top(search *v, uint32_t *top) {
  weir_scheduler *scheduler;
  *top = 0;
  if (v->levels.is_whole || v->options->given != NULL) return WEIR_OK;
  WEIR_TRY(weir_scheduler_create(v->alloc, v->p, &scheduler, v->err));
  if (!weir_schedule_is_capped(scheduler)) *top = v->levels.count;
  weir_scheduler_release(scheduler);
  return WEIR_OK;
}

static weir_status add_solvers(search *v) {
  bool few = v->p->node_count > 0 && !v->options->rough &&
             v->p->node_count <= WEIR_SEARCH_PACK_NODES;
  uint32_t top = 0;
  if (few) WEIR_TRY(weir_levels_create(v->alloc, v->p, &v->levels, v->err));
  if (few) WEIR_TRY(find_top(v, &top));
  WEIR_TRY(add_solver(v, top));
  v->work_ns = least_work(v->p);
  for (uint32_t k = 1; k < v->levels.count && k <= LEVELS; k++)
    if (!is_at_bound(v) && weir_level_devices(&v->levels, k) > 1 &&
        can_help(v, k))
      WEIR_TRY(add_lower(v, k));
  return WEIR_OK;
}

/* ---- Large problems: by clusters of several sizes */

static weir_status try_clusters(void *self, const weir_multilevel_try *t,
                                bool *out_better) {
  weir_solver *s = self;
  weir_schedule_input input = {.order = s->order,
                               .device = s->device,
                               .cluster = t->cluster,
                               .cluster_device = t->cluster_device,
                               .stop_ns = s->best->makespan_ns,
                               .spill = s->spill};
  weir_place_order(s->p, s->key, s->heap, s->waiting, s->order);
  WEIR_TRY(
      weir_schedule_run(s->scheduler, &input, s->plan, out_better, s->err));
  if (*out_better) weir_solver_keep(s, "multilevel");
  return WEIR_OK;
}

static weir_status try_multilevel(weir_solver *s) {
  weir_multilevel m = {.alloc = s->alloc,
                       .p = s->p,
                       .options = s->options,
                       .key = s->key,
                       .device = s->device,
                       .try_one = try_clusters,
                       .self = s};
  if (s->p->node_count <= WEIR_SEARCH_PACK_NODES ||
      s->best->makespan_ns <= s->bounds.best_ns)
    return WEIR_OK;
  WEIR_TRY(weir_multilevel_run(&m, &s->moves, s->err));
  weir_solver_keep_starts(s);
  return WEIR_OK;
}

/* ---- Small problems: proof, or a better plan */

static weir_status prove(weir_solver *s, uint64_t steps) {
  weir_exact_result r;
  bool complete = false;
  if (s->options->rough || !weir_exact_fits(s->p) ||
      s->best->makespan_ns <= s->bounds.best_ns)
    return WEIR_OK;
  weir_exact_limits limits = {.lower_ns = s->bounds.best_ns,
                              .upper_ns = s->best->makespan_ns,
                              .steps = steps,
                              .options = s->options};
  WEIR_TRY(weir_exact_search(s->alloc, s->p, &limits, &r, s->err));
  for (uint32_t i = 0; r.found && i < s->p->node_count; i++) {
    s->key[r.order[i]] = -(int64_t)i;
    s->device[i] = r.device[i];
  }
  /* The scheduler may lose a plan that is found, as links may be exclusive and
   * memory capped there; the proved bound holds all the same. */
  if (r.found)
    WEIR_TRY(weir_solver_schedule(s, s->best->makespan_ns, &complete));
  if (complete) weir_solver_keep(s, "exact search");
  if (!r.closed) return WEIR_OK;
  assert(s->best->makespan_ns >= r.bound_ns);
  if (r.bound_ns > s->bounds.best_ns) {
    s->bounds.best_ns = r.bound_ns;
    s->bounds.best = "exact search";
  }
  if (s->best->makespan_ns == r.bound_ns) s->best->placer = "optimal";
  return WEIR_OK;
}

/* ---- Rounds */

static bool is_stopped(const search *v) {
  return v->options->stop != NULL && v->options->stop(v->options->stop_self);
}

/* Solver |i|'s best plan, where it is shorter, becomes that of |j|, which has
 * more devices. */
static weir_status hand_on(search *v, uint32_t i, uint32_t j) {
  weir_solver *from = &v->solvers[i], *to = &v->solvers[j];
  if (from->best->makespan_ns >= to->best->makespan_ns) return WEIR_OK;
  WEIR_TRY(weir_place_plan_copy(to->plan, from->best, v->err));
  weir_level_lift(&v->levels, v->level[i], v->level[j], to->p, to->plan);
  weir_solver_keep(to, from->best->placer);
  return WEIR_OK;
}

static weir_status descend(search *v, uint32_t i) {
  weir_solver *s = &v->solvers[i];
  weir_descent o = {.alloc = v->alloc,
                    .problem = s->p,
                    .floor_ns = s->bounds.best_ns,
                    .stop = v->options->stop,
                    .stop_self = v->options->stop_self};
  if (s->descended || s->options->rough) return WEIR_OK;
  s->descended = true;
  return weir_place_descend(&o, s->best, v->err);
}

/* From the level with the fewest devices to solver 0. */
static weir_status end_round(search *v, bool full) {
  for (uint32_t n = 0; n < v->count; n++) {
    uint32_t i = (n + 1) % v->count;
    if (n > 0) WEIR_TRY(hand_on(v, n, i));
    if (full && can_solver_help(v, i)) WEIR_TRY(descend(v, i));
  }
  return WEIR_OK;
}

static weir_status run_round(search *v, uint64_t last) {
  for (uint32_t i = 0; i < v->count; i++) {
    weir_solver *s = &v->solvers[i];
    if (is_at_bound(v)) return WEIR_OK;
    if (!can_solver_help(v, i)) continue;
    WEIR_TRY(weir_solver_walk(s, last));
    WEIR_TRY(prove(s, last < LAST_STEPS / 2 ? 2 * last : LAST_STEPS));
  }
  return WEIR_OK;
}

static weir_status run_rounds(search *v) {
  uint64_t moves = v->options->moves;
  WEIR_TRY(try_multilevel(&v->solvers[0]));
  for (uint32_t i = 0; i < v->count; i++) {
    if (!can_solver_help(v, i)) continue;
    WEIR_TRY(prove(&v->solvers[i], FIRST_STEPS));
    WEIR_TRY(weir_solver_set_out(&v->solvers[i]));
  }
  for (uint32_t round = 0; !is_at_bound(v) && !is_stopped(v); round++) {
    uint64_t end = round_end(v->p, round);
    bool full = end <= moves;
    if (!full && round > 0) break;
    WEIR_TRY(run_round(v, full ? end : moves));
    WEIR_TRY(end_round(v, full));
    if (!full || end == UINT64_MAX) break;
  }
  return WEIR_OK;
}

/* ---- All together */

static weir_status run_search(search *v, weir_place_result *out) {
  WEIR_TRY(add_solvers(v));
  weir_solver *all = &v->solvers[0];
  out->first_ns = least_step(v);
  if (v->options->moves > 0 && v->p->node_count > 0)
    WEIR_TRY(run_rounds(v));
  else
    WEIR_TRY(end_round(v, false));
  weir_level_lift(&v->levels, v->level[0], 0, v->p, all->best);
  assert(all->best->makespan_ns >= all->bounds.best_ns);
  for (uint32_t i = 0; i < v->count; i++) out->moves += v->solvers[i].moves;
  out->bounds = all->bounds;
  out->plan = all->best;
  all->best = NULL;
  return WEIR_OK;
}

weir_status weir_place_search(const weir_allocator *alloc,
                              const weir_place_problem *problem,
                              const weir_place_options *options,
                              weir_place_result *out, weir_error *err) {
  search *v = weir_alloc_array(alloc, 1, sizeof *v);
  if (v == NULL) return weir_fail_memory(err, sizeof *v);
  v->alloc = alloc;
  v->p = problem;
  v->options = options;
  v->lower = *options;
  v->lower.given = NULL;
  v->err = err;
  weir_status status = run_search(v, out);
  for (uint32_t i = 0; i < v->count; i++) weir_solver_end(&v->solvers[i]);
  for (uint32_t i = 0; i <= LEVELS; i++)
    weir_place_problem_release(v->problems[i]);
  weir_levels_release(&v->levels);
  weir_free(alloc, v);
  return status;
}
