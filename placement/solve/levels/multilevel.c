/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters, coarse plans and tries (multilevel.h).
 *
 * Two levels are searched: the finest one that is small enough, and before it
 * the coarsest, if it is much smaller; levels between them add little. A coarse
 * problem takes a cluster for one node, which starts when all its inputs are
 * there. That is too strict, so a coarse step promises nothing; the tries on
 * the problem itself decide.
 *
 * Effort is counted in schedules of the whole problem: one of a coarse problem
 * counts as its share of nodes and uses. Half of the moves are for coarse
 * searches. Once all tries are made, what is left goes to more searches of the
 * finest level, each twice as long as the one before. */
#include "placement/solve/levels/multilevel.h"

#include <assert.h>
#include <string.h>

#include "placement/schedule/rank.h"
#include "placement/solve/levels/coarsen.h"
#include "placement/solve/levels/split.h"
#include "placement/solve/search.h"

enum {
  LEVELS = 24,
  SEARCHED = 4096, /* nodes of the finest problem that is searched */
  COARSEST = 64,   /* nodes per device of the coarsest */
  PIECES = 32,     /* a cluster is at most one of so many of a device's share */
  SMALLER = 4      /* times: the coarsest than the finest, or it is left out */
};

typedef struct multilevel {
  const weir_multilevel *m;
  weir_coarse levels[LEVELS]; /* from fine to coarse */
  uint32_t nodes[LEVELS];     /* of each */
  uint32_t count;
  uint32_t finest; /* the first level that is searched; |count|: none */
  /* Three numbers per node; the first two are |cluster|, of the level in hand,
   * and |cluster_device|. */
  uint32_t *room, *cluster, *cluster_device;
  weir_place_plan *plan; /* of level |searched|: the best coarse one */
  uint32_t searched;
  uint64_t effort; /* nodes and uses that coarse searches scheduled */
  uint64_t *moves;
  weir_error *err;
} multilevel;

static uint64_t size_of(const weir_place_problem *p) {
  return (uint64_t)p->node_count + p->use_count + 1;
}

static bool is_stopped(const multilevel *l) {
  const weir_place_options *o = l->m->options;
  return o->stop != NULL && o->stop(o->stop_self);
}

static bool is_over(const multilevel *l) {
  return *l->moves >= l->m->options->moves || is_stopped(l);
}

/* ---- Down: coarser and coarser */

static int64_t most_of_cluster(const weir_place_problem *p) {
  int64_t sum = 0, most = 0, limit = INT64_MAX / 4;
  for (uint32_t n = 0; n < p->node_count; n++) {
    int64_t work = weir_coarsen_work(p, n);
    if (work > most) most = work;
    sum = sum > limit - work ? limit : sum + work;
  }
  sum /= (int64_t)p->device_count * PIECES;
  return sum > most ? sum : most;
}

/* Of levels that are too large for a search only the clusters are kept. */
static void forget_problem(multilevel *l, uint32_t level) {
  if (l->levels[level].problem->node_count <= SEARCHED) return;
  weir_place_problem_release(l->levels[level].problem);
  l->levels[level].problem = NULL;
}

static weir_status coarsen_all(multilevel *l) {
  const weir_place_problem *p = l->m->p;
  int64_t most_ns = most_of_cluster(p);
  while (l->count < LEVELS && p->node_count > COARSEST * p->device_count &&
         !is_stopped(l)) {
    weir_coarse *next = &l->levels[l->count];
    WEIR_TRY(weir_coarsen(l->m->alloc, p, most_ns, next, l->err));
    if (l->count > 0) forget_problem(l, l->count - 1);
    if (next->problem == NULL) break;
    p = next->problem;
    if (p->node_count > SEARCHED) l->finest = l->count + 1;
    l->nodes[l->count++] = p->node_count;
  }
  assert(l->finest <= l->count);
  return WEIR_OK;
}

/* ---- Up: search what is small enough */

/* The best coarse plan on |level|, which is finer than the plan's. */
static weir_status project(multilevel *l, uint32_t level,
                           weir_place_plan **out) {
  const weir_place_problem *p = l->levels[level].problem;
  WEIR_TRY(weir_place_plan_create(l->m->alloc, p, out, l->err));
  for (uint32_t n = 0; n < p->node_count; n++) {
    uint32_t c = n;
    for (uint32_t i = level; i < l->searched; i++)
      c = l->levels[i + 1].cluster[c];
    (*out)->device[n] = l->plan->device[c];
    (*out)->start_ns[n] = l->plan->start_ns[c];
  }
  return WEIR_OK;
}

/* Without memory the work ends; a level that has no plan is left out. */
static weir_status no_plan(multilevel *l, weir_status s,
                           const weir_error *why) {
  if (s != WEIR_RESOURCE_EXHAUSTED || why->id[1] != '6') return WEIR_OK;
  weir_error_copy(l->err, why);
  return s;
}

/* Searches |level|, also from |given| (may be NULL), with moves for |effort|;
 * keeps the plan if it is of a finer level or better. */
static weir_status search_from(multilevel *l, uint32_t level, uint64_t effort,
                               const weir_place_plan *given) {
  const weir_place_problem *p = l->levels[level].problem;
  const weir_place_options *mine = l->m->options;
  weir_place_result r = {0};
  weir_error why = WEIR_ERROR_INIT;
  weir_place_options o = {.moves = effort / size_of(p),
                          .seed = mine->seed + *l->moves,
                          .given = given,
                          .rough = true,
                          .stop = mine->stop,
                          .stop_self = mine->stop_self};
  weir_status s = weir_place_search(l->m->alloc, p, &o, &r, &why);
  if (s != WEIR_OK) return no_plan(l, s, &why);
  l->effort += r.moves * size_of(p);
  if (l->plan != NULL && l->searched == level &&
      l->plan->makespan_ns <= r.plan->makespan_ns) {
    weir_place_plan_release(r.plan);
    return WEIR_OK;
  }
  weir_place_plan_release(l->plan);
  l->plan = r.plan;
  l->searched = level;
  return WEIR_OK;
}

/* Makes a first plan of |level|, of the graph's shape if that is better. */
static weir_status begin_level(multilevel *l, uint32_t level) {
  const weir_place_problem *p = l->levels[level].problem;
  weir_place_plan *given = NULL;
  WEIR_TRY(weir_place_plan_create(l->m->alloc, p, &given, l->err));
  weir_status s = WEIR_OK;
  for (int rule = 0; rule < WEIR_SPLIT_RULES && s == WEIR_OK; rule++) {
    weir_split(p, (weir_split_rule)rule, l->room, l->m->key, given->device);
    for (uint32_t n = 0; n < p->node_count; n++)
      given->start_ns[n] = -l->m->key[n];
    s = search_from(l, level, 0, given);
  }
  weir_place_plan_release(given);
  return s;
}

static weir_status search_level(multilevel *l, uint32_t level,
                                uint64_t effort) {
  weir_place_plan *given = NULL;
  if (l->plan == NULL) WEIR_TRY(begin_level(l, level));
  if (l->plan == NULL) return WEIR_OK;
  WEIR_TRY(project(l, level, &given));
  weir_status s = search_from(l, level, effort, given);
  weir_place_plan_release(given);
  return s;
}

/* Counts coarse effort in schedules of the whole problem. */
static void count_effort(multilevel *l) {
  *l->moves += l->effort / size_of(l->m->p);
  l->effort %= size_of(l->m->p);
}

static weir_status search_all(multilevel *l) {
  if (l->finest >= l->count) return WEIR_OK;
  uint64_t moves = weir_place_default_moves(l->m->p);
  uint32_t last = l->count - 1;
  if (moves > l->m->options->moves) moves = l->m->options->moves;
  uint64_t effort = moves * size_of(l->m->p) / 4;
  if (size_of(l->levels[last].problem) * SMALLER <=
      size_of(l->levels[l->finest].problem))
    WEIR_TRY(search_level(l, last, effort));
  WEIR_TRY(search_level(l, l->finest, effort));
  count_effort(l);
  return WEIR_OK;
}

/* ---- Tries */

/* The clusters of |level| per node of the problem. */
static void find_clusters(multilevel *l, uint32_t level) {
  for (uint32_t n = 0; n < l->m->p->node_count; n++) {
    uint32_t c = n;
    for (uint32_t i = 0; i <= level; i++) c = l->levels[i].cluster[c];
    l->cluster[n] = c;
  }
}

static weir_status try_splits(multilevel *l) {
  for (int rule = 0; rule < WEIR_SPLIT_RULES && !is_over(l); rule++) {
    weir_multilevel_try t = {NULL, NULL};
    bool better;
    weir_split(l->m->p, (weir_split_rule)rule, l->room, l->m->key,
               l->m->device);
    ++*l->moves;
    WEIR_TRY(l->m->try_one(l->m->self, &t, &better));
  }
  return WEIR_OK;
}

/* The coarse plan's devices, in the order of m->key. */
static weir_status try_devices(multilevel *l) {
  weir_multilevel_try t = {NULL, NULL};
  bool better;
  for (uint32_t n = 0; n < l->m->p->node_count; n++)
    l->m->device[n] = l->plan->device[l->cluster[n]];
  ++*l->moves;
  return l->m->try_one(l->m->self, &t, &better);
}

/* The coarse plan: by its starts, also when a stop came, by rank and by depth.
 */
static weir_status try_plan(multilevel *l) {
  const weir_place_problem *p = l->m->p;
  if (l->plan == NULL) return WEIR_OK;
  find_clusters(l, l->searched);
  for (uint32_t n = 0; n < p->node_count; n++)
    l->m->key[n] = -l->plan->start_ns[l->cluster[n]];
  WEIR_TRY(try_devices(l));
  if (is_over(l)) return WEIR_OK;
  weir_place_rank(p, WEIR_RANK_MEAN, l->m->key);
  WEIR_TRY(try_devices(l));
  if (is_over(l)) return WEIR_OK;
  weir_split_depth(p, l->cluster_device, l->m->device, l->m->key);
  return try_devices(l);
}

/* Each cluster where its first node ends first: from small clusters to large
 * ones, while that helps. */
static weir_status try_clusters(multilevel *l) {
  const weir_place_problem *p = l->m->p;
  bool better = true;
  for (uint32_t i = 0; i < l->count && better && !is_over(l); i++) {
    weir_multilevel_try t = {l->cluster, l->cluster_device};
    find_clusters(l, i);
    weir_place_rank(p, WEIR_RANK_MEAN, l->m->key);
    memset(l->cluster_device, 0xff, l->nodes[i] * sizeof *l->cluster_device);
    for (uint32_t n = 0; n < p->node_count; n++)
      l->m->device[n] = WEIR_PLACE_NONE;
    ++*l->moves;
    WEIR_TRY(l->m->try_one(l->m->self, &t, &better));
  }
  return WEIR_OK;
}

/* More searches of the finest level, while there are moves. */
static weir_status search_on(multilevel *l) {
  uint64_t effort = size_of(l->m->p);
  while (l->plan != NULL && l->searched == l->finest && !is_over(l)) {
    ++*l->moves; /* so that this ends, and no two have one seed */
    uint64_t left = l->m->options->moves - *l->moves;
    int64_t before = l->plan->makespan_ns;
    if (effort / size_of(l->m->p) > left) effort = left * size_of(l->m->p);
    WEIR_TRY(search_level(l, l->finest, effort));
    count_effort(l);
    if (l->plan->makespan_ns < before) WEIR_TRY(try_plan(l));
    if (effort < UINT64_MAX / 4) effort *= 2;
  }
  return WEIR_OK;
}

/* Room comes last: coarsening needs more for itself. */
static weir_status run_levels(multilevel *l) {
  size_t n = (size_t)l->m->p->node_count + 1;
  WEIR_TRY(coarsen_all(l));
  l->room = weir_alloc_array(l->m->alloc, 3 * n, sizeof *l->room);
  if (l->room == NULL) return weir_fail_memory(l->err, 3 * n * sizeof *l->room);
  l->cluster = l->room;
  l->cluster_device = l->room + n;
  WEIR_TRY(search_all(l));
  WEIR_TRY(try_plan(l));
  WEIR_TRY(try_clusters(l));
  WEIR_TRY(try_splits(l));
  return search_on(l);
}

weir_status weir_multilevel_run(const weir_multilevel *m, uint64_t *moves,
                                weir_error *err) {
  multilevel l = {.m = m, .moves = moves, .err = err};
  weir_status s = run_levels(&l);
  for (uint32_t i = 0; i < l.count; i++)
    weir_coarse_release(m->alloc, &l.levels[i]);
  weir_place_plan_release(l.plan);
  weir_free(m->alloc, l.room);
  return s;
}
