/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/solve/search.h"
#include "placement/schedule/rank.h"
#include "placement/schedule/schedule.h"
#include "placement/solve/exact.h"
#include "placement/solve/lists.h"

#include <assert.h>
#include <string.h>

#include "placement/solve/rescue.h"
#include "runtime/base/mix.h"
#include "runtime/base/table.h"

enum {
  MEMORY = 200,             /* how long late acceptance remembers */
  ASK_EVERY = 16,           /* moves between two looks at |stop| */
  PACK_NODES = 4096,        /* up to here, packing and all of the portfolio */
  NODE_SCHEDULES = 2000000, /* of a search without a budget */
  SEARCH_NODES = 5000,      /* beyond: portfolio only */
  MOST_MOVES = 200000,
  FIRST_STEPS = 20000, /* of the exact search, before the local one */
  LAST_STEPS = 200000  /* and after it */
};

typedef struct solver {
  const weir_allocator *alloc;
  const weir_place_problem *p;
  const weir_place_options *options;
  weir_scheduler *scheduler;
  weir_place_plan *plan, *best;
  int64_t *key, *kept_key; /* priorities: tried, accepted */
  uint32_t *device, *kept_device;
  uint32_t *order, *heap, *waiting;
  bool listed; /* the best plan is not a rank's */
  /* Packing from the end, where it is possible. */
  weir_place_problem *reversed;
  weir_scheduler *back_scheduler;
  weir_place_plan *back_plan;
  bool spill; /* the best plan sends tensors elsewhere: others may too */
  uint64_t random;
  weir_error *err;
} solver;

static uint32_t draw_below(solver *s, uint32_t limit) {
  assert(limit > 0);
  return (uint32_t)(((weir_mix_next(&s->random) >> 32) * limit) >> 32);
}

/* ---- Scheduling one candidate */

static weir_status schedule(solver *s, int64_t stop_ns, bool *complete) {
  weir_place_order(s->p, s->key, s->heap, s->waiting, s->order);
  weir_schedule_input input = {.order = s->order,
                               .device = s->device,
                               .stop_ns = stop_ns,
                               .spill = s->spill};
  return weir_schedule_run(s->scheduler, &input, s->plan, complete, s->err);
}

static weir_status keep_if_better(solver *s, const char *placer) {
  assert(s->plan != s->best && s->plan->makespan_ns >= 0);
  if (s->best->makespan_ns <= s->plan->makespan_ns) return WEIR_OK;
  weir_place_plan *worse = s->best;
  s->best = s->plan;
  s->plan = worse;
  s->best->placer = placer;
  memcpy(s->kept_key, s->key, s->p->node_count * sizeof *s->key);
  memcpy(s->kept_device, s->device, s->p->node_count * sizeof *s->device);
  return WEIR_OK;
}

/* ---- Packing: by falling end times on the reversed problem, and back. */

static bool copies_are_free(const weir_place_problem *p) {
  for (uint32_t l = 0; l < p->link_count; l++)
    if (!weir_place_link_is_free(&p->links[l])) return false;
  size_t pairs = (size_t)p->device_count * p->device_count;
  for (size_t i = 0; i < pairs; i++)
    if (p->link_of[i] == WEIR_PLACE_NONE &&
        i / p->device_count != i % p->device_count)
      return false;
  return true;
}

static weir_status reverse(const weir_allocator *alloc,
                           const weir_place_problem *p,
                           weir_place_problem **out, weir_error *err) {
  weir_place_builder *b = NULL;
  WEIR_TRY(weir_place_builder_create(alloc, 1, &b, err));
  for (uint32_t d = 0; d < p->device_count; d++)
    weir_place_add_device(b, &p->devices[d]);
  weir_place_connect_all(b, &(weir_place_link){0});
  for (uint32_t n = p->node_count; n-- > 0;) {
    weir_place_node_spec spec = {.cost = &p->cost[n], .group = WEIR_PLACE_NONE};
    uint32_t id = weir_place_add_node(b, &spec);
    weir_place_add_tensor(b, id, 0);
    for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
      for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++)
        weir_place_add_use(b, id, p->node_count - 1 - p->use_node[u]);
  }
  weir_status s = weir_place_builder_finish(b, out, err);
  weir_place_builder_release(b);
  return s;
}

static weir_status prepare_packing(solver *s) {
  const weir_place_problem *p = s->p;
  if (p->class_count != 1 || p->set_count != 1 || p->group_count != 0 ||
      p->node_count > PACK_NODES || !copies_are_free(p) ||
      weir_schedule_is_capped(s->scheduler))
    return WEIR_OK;
  WEIR_TRY(reverse(s->alloc, p, &s->reversed, s->err));
  WEIR_TRY(
      weir_scheduler_create(s->alloc, s->reversed, &s->back_scheduler, s->err));
  return weir_place_plan_create(s->alloc, s->reversed, &s->back_plan, s->err);
}

/* Packs s->plan until it gets no shorter. A node's end in the plan is its
 * priority in the reversed problem: the node that ends last comes first. */
static weir_status pack(solver *s) {
  uint32_t count = s->p->node_count;
  int64_t before;
  assert(s->reversed != NULL && s->reversed->node_count == count);
  do {
    before = s->plan->makespan_ns;
    for (uint32_t n = 0; n < count; n++)
      s->key[count - 1 - n] = s->plan->end_ns[n];
    weir_place_order(s->reversed, s->key, s->heap, s->waiting, s->order);
    weir_schedule_input back = {.order = s->order};
    WEIR_TRY(weir_schedule_run(s->back_scheduler, &back, s->back_plan, NULL,
                               s->err));
    for (uint32_t n = 0; n < count; n++)
      s->key[n] = s->back_plan->end_ns[count - 1 - n];
    WEIR_TRY(schedule(s, 0, NULL));
  } while (s->plan->makespan_ns < before);
  return WEIR_OK;
}

/* ---- The portfolio */

static weir_status try_rank(solver *s, weir_rank_rule rule) {
  static const char *const names[] = {[WEIR_RANK_MEAN] = "rank mean",
                                      [WEIR_RANK_BEST] = "rank best",
                                      [WEIR_RANK_WORST] = "rank worst"};
  WEIR_TABLE_OF(names, WEIR_RANK_RULES);
  bool complete = false;
  weir_place_rank(s->p, rule, s->key);
  WEIR_TRY(schedule(s, s->best->makespan_ns, &complete));
  return complete ? keep_if_better(s, names[rule]) : WEIR_OK;
}

/* Ranks that cannot differ from the mean one are left out. */
static weir_status try_ranks(solver *s) {
  bool one = s->p->class_count == 1;
  if (!one || !copies_are_free(s->p)) WEIR_TRY(try_rank(s, WEIR_RANK_BEST));
  return one ? WEIR_OK : try_rank(s, WEIR_RANK_WORST);
}

static weir_status try_numbers(solver *s) {
  bool complete = false;
  for (uint32_t n = 0; n < s->p->node_count; n++) s->key[n] = -(int64_t)n;
  WEIR_TRY(schedule(s, s->best->makespan_ns, &complete));
  return complete ? keep_if_better(s, "as numbered") : WEIR_OK;
}

/* Everything on |device|, where that is possible. It takes the sum of all
 * costs, so that a longer one need not be made. */
static weir_status try_single(solver *s, uint32_t device) {
  int64_t sum = 0;
  for (uint32_t n = 0; n < s->p->node_count; n++) {
    int64_t cost = weir_place_cost(s->p, n, device);
    if (cost == WEIR_PLACE_NO_KERNEL || cost >= s->best->makespan_ns - sum)
      return WEIR_OK;
    sum += cost;
  }
  for (uint32_t n = 0; n < s->p->node_count; n++) s->device[n] = device;
  bool complete = false;
  weir_status status = schedule(s, s->best->makespan_ns, &complete);
  if (status == WEIR_OK && complete) status = keep_if_better(s, "one device");
  for (uint32_t n = 0; n < s->p->node_count; n++)
    s->device[n] = WEIR_PLACE_NONE;
  return status;
}

/* One device of each class: the others are worth the same. */
static weir_status try_singles(solver *s) {
  bool seen[WEIR_PLACE_CLASSES] = {false};
  for (uint32_t d = 0; d < s->p->device_count; d++) {
    uint32_t c = s->p->devices[d].cls;
    if (seen[c]) continue;
    seen[c] = true;
    WEIR_TRY(try_single(s, d));
  }
  return WEIR_OK;
}

static weir_status try_given(solver *s) {
  const weir_place_plan *given = s->options->given;
  if (given == NULL || given->node_count != s->p->node_count) return WEIR_OK;
  for (uint32_t n = 0; n < s->p->node_count; n++) {
    s->key[n] = -given->start_ns[n];
    s->device[n] = given->device[n];
  }
  bool complete = false;
  weir_status status = schedule(s, s->best->makespan_ns, &complete);
  if (status == WEIR_OK && complete) status = keep_if_better(s, "as given");
  for (uint32_t n = 0; n < s->p->node_count; n++)
    s->device[n] = WEIR_PLACE_NONE;
  return status;
}

/* Where caps matter: plans that spare memory. There must be one in the end. */
static weir_status try_rescue(solver *s) {
  weir_place_rescue r = {s->alloc, s->p, s->scheduler,
                         s->p->node_count > PACK_NODES, false};
  int64_t before = s->best->makespan_ns;
  bool found = false;
  if (before != INT64_MAX && r.enough) return WEIR_OK;
  WEIR_TRY(weir_place_rescue_run(&r, &s->best, &s->plan, &found, s->err));
  if (!found) return weir_place_explain_short(s->alloc, s->p, s->err);
  if (s->best->makespan_ns == before) return WEIR_OK;
  s->spill = r.spilled;
  for (uint32_t n = 0; n < s->p->node_count; n++) {
    s->kept_key[n] = -s->best->start_ns[n];
    s->kept_device[n] = s->best->device[n];
  }
  return WEIR_OK;
}

/* Other lists, for small problems with unequal devices or copies that cost. */
static weir_status try_lists(solver *s) {
  weir_status status = WEIR_OK;
  if (!weir_place_list_fits(s->p)) return WEIR_OK;
  for (int r = 0; r < WEIR_LIST_RULES && status == WEIR_OK; r++) {
    weir_list_rule rule = (weir_list_rule)r;
    bool complete = false;
    status = weir_place_list(s->alloc, s->p, rule, s->key, s->device, s->err);
    if (status == WEIR_OK)
      status = schedule(s, s->best->makespan_ns, &complete);
    if (status == WEIR_OK && complete) {
      status = keep_if_better(s, weir_place_list_name(rule));
      s->listed = true;
    }
  }
  for (uint32_t n = 0; n < s->p->node_count; n++)
    s->device[n] = WEIR_PLACE_NONE;
  return status;
}

/* The bound is known after the first: a plan that meets it ends the work. */
static weir_status run_portfolio(solver *s, weir_place_bounds *bounds) {
  bool large = s->p->node_count > PACK_NODES;
  for (uint32_t n = 0; n < s->p->node_count; n++)
    s->device[n] = WEIR_PLACE_NONE;
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
  if (weir_schedule_is_capped(s->scheduler)) WEIR_TRY(try_rescue(s));
  if (s->reversed != NULL) {
    memcpy(s->key, s->kept_key, s->p->node_count * sizeof *s->key);
    WEIR_TRY(schedule(s, 0, NULL));
    WEIR_TRY(pack(s));
    WEIR_TRY(keep_if_better(s, "packed"));
  }
  return large ? WEIR_OK
               : weir_place_bound(s->alloc, s->p, s->best->makespan_ns, bounds,
                                  s->err);
}

/* ---- Local search */

/* Moves a few nodes' priorities beside those of others. */
static void change_keys(solver *s) {
  uint32_t count = s->p->node_count, changes = 1 + draw_below(s, 3);
  for (uint32_t i = 0; i < changes; i++) {
    uint32_t n = draw_below(s, count), other = draw_below(s, count);
    s->key[n] = s->key[other] + (weir_mix_next(&s->random) & 1 ? 1 : -1);
  }
}

/* Sends a node to a device, or lets it choose again. */
static void change_device(solver *s) {
  uint32_t n = draw_below(s, s->p->node_count);
  uint32_t d = draw_below(s, s->p->device_count + 1);
  if (d == s->p->device_count ||
      weir_place_cost(s->p, n, d) == WEIR_PLACE_NO_KERNEL)
    s->device[n] = WEIR_PLACE_NONE;
  else
    s->device[n] = d;
}

static weir_status move(solver *s, int64_t limit_ns, bool *complete) {
  uint32_t count = s->p->node_count;
  memcpy(s->key, s->kept_key, count * sizeof *s->key);
  memcpy(s->device, s->kept_device, count * sizeof *s->device);
  if (s->reversed != NULL || (weir_mix_next(&s->random) & 1) != 0)
    change_keys(s);
  else
    change_device(s);
  WEIR_TRY(schedule(s, s->reversed != NULL ? 0 : limit_ns + 1, complete));
  return s->reversed != NULL ? pack(s) : WEIR_OK;
}

/* From the priorities and devices that are kept, whose step is |now|, until
 * |*moves| are |last|. */
static weir_status search_on(solver *s, int64_t now, int64_t bound_ns,
                             uint64_t last, uint64_t *moves) {
  int64_t late[MEMORY];
  for (int i = 0; i < MEMORY; i++) late[i] = now;
  for (; *moves < last; ++*moves) {
    if (s->best->makespan_ns <= bound_ns) break;
    if (*moves % ASK_EVERY == 0 && s->options->stop != NULL &&
        s->options->stop(s->options->stop_self))
      break;
    /* As good as now, or as MEMORY moves ago, is accepted. */
    int64_t *old = &late[*moves % MEMORY];
    int64_t limit = *old > now ? *old : now;
    bool complete = false;
    WEIR_TRY(move(s, limit, &complete));
    if (complete && s->plan->makespan_ns <= limit) {
      now = s->plan->makespan_ns;
      memcpy(s->kept_key, s->key, s->p->node_count * sizeof *s->key);
      memcpy(s->kept_device, s->device, s->p->node_count * sizeof *s->device);
      if (now < s->best->makespan_ns) WEIR_TRY(keep_if_better(s, "search"));
    }
    *old = now;
  }
  return WEIR_OK;
}

/* Keeps the mean rank, with devices that nodes choose, if it makes a plan. */
static weir_status keep_rank(solver *s, int64_t *now, bool *out_kept) {
  uint32_t count = s->p->node_count;
  weir_place_rank(s->p, WEIR_RANK_MEAN, s->key);
  for (uint32_t n = 0; n < count; n++) s->device[n] = WEIR_PLACE_NONE;
  WEIR_TRY(schedule(s, 0, out_kept));
  if (!*out_kept) return WEIR_OK;
  memcpy(s->kept_key, s->key, count * sizeof *s->key);
  memcpy(s->kept_device, s->device, count * sizeof *s->device);
  *now = s->plan->makespan_ns;
  return WEIR_OK;
}

/* Where another list gave the best plan, its devices are all set: one half of
 * the moves then begins with a rank, where nodes choose theirs. The other half
 * begins with the best plan. */
static weir_status search(solver *s, int64_t bound_ns, uint64_t *moves) {
  uint64_t last = s->options->moves;
  int64_t now = s->best->makespan_ns;
  if (s->listed && now > bound_ns) {
    bool kept = false;
    WEIR_TRY(keep_rank(s, &now, &kept));
    if (kept) WEIR_TRY(search_on(s, now, bound_ns, last / 2, moves));
    now = s->best->makespan_ns;
    for (uint32_t n = 0; n < s->p->node_count; n++) {
      s->kept_key[n] = -s->best->start_ns[n];
      s->kept_device[n] = s->best->device[n];
    }
  }
  return search_on(s, now, bound_ns, last, moves);
}

uint64_t weir_place_default_moves(const weir_place_problem *p) {
  if (p->node_count > SEARCH_NODES || p->node_count == 0) return 0;
  uint64_t moves = NODE_SCHEDULES / p->node_count;
  return moves > MOST_MOVES ? MOST_MOVES : moves;
}

/* ---- Small problems: proof, or a better plan */

static weir_status prove(solver *s, weir_place_result *out, uint64_t steps) {
  weir_exact_result r;
  bool complete = false;
  if (!weir_exact_fits(s->p) || s->best->makespan_ns <= out->bounds.best_ns)
    return WEIR_OK;
  weir_exact_limits limits = {.lower_ns = out->bounds.best_ns,
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
  if (r.found) WEIR_TRY(schedule(s, s->best->makespan_ns, &complete));
  if (complete) WEIR_TRY(keep_if_better(s, "exact search"));
  if (!r.closed) return WEIR_OK;
  assert(s->best->makespan_ns >= r.bound_ns);
  if (r.bound_ns > out->bounds.best_ns) {
    out->bounds.best_ns = r.bound_ns;
    out->bounds.best = "exact search";
  }
  if (s->best->makespan_ns == r.bound_ns) s->best->placer = "optimal";
  return WEIR_OK;
}

static weir_status search_and_prove(solver *s, weir_place_result *out) {
  uint64_t moves = s->options->moves;
  WEIR_TRY(prove(s, out, moves < FIRST_STEPS ? moves : FIRST_STEPS));
  WEIR_TRY(search(s, out->bounds.best_ns, &out->moves));
  return prove(s, out, moves < LAST_STEPS ? moves : LAST_STEPS);
}

/* ---- All together */

static weir_status solver_begin(solver *s) {
  const weir_allocator *a = s->alloc;
  size_t n = (size_t)s->p->node_count + 1;
  s->key = weir_alloc_array(a, n, sizeof *s->key);
  s->kept_key = weir_alloc_array(a, n, sizeof *s->kept_key);
  s->device = weir_alloc_array(a, n, sizeof *s->device);
  s->kept_device = weir_alloc_array(a, n, sizeof *s->kept_device);
  s->order = weir_alloc_array(a, n, sizeof *s->order);
  s->heap = weir_alloc_array(a, n, sizeof *s->heap);
  s->waiting = weir_alloc_array(a, n, sizeof *s->waiting);
  if (s->key == NULL || s->kept_key == NULL || s->device == NULL ||
      s->kept_device == NULL || s->order == NULL || s->heap == NULL ||
      s->waiting == NULL)
    return weir_fail_memory(s->err, n * sizeof *s->key);
  WEIR_TRY(weir_scheduler_create(a, s->p, &s->scheduler, s->err));
  WEIR_TRY(weir_place_plan_create(a, s->p, &s->plan, s->err));
  WEIR_TRY(weir_place_plan_create(a, s->p, &s->best, s->err));
  s->best->makespan_ns = INT64_MAX; /* none yet */
  return prepare_packing(s);
}

static void solver_end(solver *s) {
  const weir_allocator *a = s->alloc;
  weir_free(a, s->key);
  weir_free(a, s->kept_key);
  weir_free(a, s->device);
  weir_free(a, s->kept_device);
  weir_free(a, s->order);
  weir_free(a, s->heap);
  weir_free(a, s->waiting);
  weir_scheduler_release(s->scheduler);
  weir_scheduler_release(s->back_scheduler);
  weir_place_plan_release(s->plan);
  weir_place_plan_release(s->back_plan);
  weir_place_plan_release(s->best);
  weir_place_problem_release(s->reversed);
}

weir_status weir_place_search(const weir_allocator *alloc,
                              const weir_place_problem *problem,
                              const weir_place_options *options,
                              weir_place_result *out, weir_error *err) {
  solver s = {.alloc = alloc,
              .p = problem,
              .options = options,
              .random = options->seed,
              .err = err};
  weir_status status = solver_begin(&s);
  if (status == WEIR_OK) status = run_portfolio(&s, &out->bounds);
  if (status == WEIR_OK) out->first_ns = s.best->makespan_ns;
  if (status == WEIR_OK && options->moves > 0 && problem->node_count > 0)
    status = search_and_prove(&s, out);
  if (status == WEIR_OK) {
    assert(s.best->makespan_ns >= out->bounds.best_ns);
    out->plan = s.best;
    s.best = NULL;
  }
  solver_end(&s);
  return status;
}
