/* SPDX-License-Identifier: Apache-2.0 */
/* From a problem and options to a checked and measured plan.
 *
 * The portfolio and the search minimise latency; another objective starts from
 * their plan and improves it by its own moves. A plan that is given joins the
 * candidates, or is taken as it is (replay). Every result passes the checker,
 * whose peaks are the ones that are reported.
 * A budget of time makes a plan depend on the machine's speed; a budget of
 * moves does not, and is the default. */
#include "placement/place_solve.h"

#include "placement/bounds/bounds.h"
#include "placement/carry/carry_plan.h"
#include "placement/check.h"
#include "placement/place_internal.h"
#include "placement/place_what_if.h"
#include "placement/plan_read.h"
#include "placement/plan_retime.h"
#include "placement/report/figures.h"

enum {
  BALANCE_MOVES = 700000, /* of another objective's, which cost less; */
  MORE_MOVES = 2000,      /* and of a pipeline's for each node, */
  MORE_NODES = 4096,      /* up to so many: beyond, moves are dear */
  MICROBATCHES = 8
};

/* When a search ends before its moves are used up. */
typedef struct ending {
  const weir_clock *clock;
  int64_t at_ns; /* 0: at no time */
  bool (*stop)(void *self);
  void *stop_self;
} ending;

static bool is_over(void *self) {
  const ending *e = self;
  if (e->stop != NULL && e->stop(e->stop_self)) return true;
  return e->at_ns != 0 && e->clock->now_ns(e->clock->self) >= e->at_ns;
}

/* A plan whose kernels were assumed counts where they are assumed again. */
static weir_status check_assumed(const weir_plan *p,
                                 const weir_place_plan *given, const char *name,
                                 weir_error *err) {
  if (!given->assumed || p->placing->options.assumed_kinds != 0) return WEIR_OK;
  weir_status s = weir_fail(err, WEIR_W3016, NULL,
                            "%.100s assumes kernels that do not exist, so it "
                            "cannot be run",
                            name);
  weir_hint(err, "place it without --assume-kernels");
  return s;
}

static weir_status take_given(const weir_plan *p, const weir_plan_start *start,
                              weir_place_plan **out, weir_error *err) {
  const weir_place_request *r = start->request;
  *out = NULL;
  if (r == NULL || !start->given) return WEIR_OK;
  if (r->change_count > 0)
    return weir_place_carry(r->before, p->problem, out, err);
  if (r->carried.data != NULL)
    return weir_place_plan_unpack(p->alloc, p->problem, r->carried, out, err);
  if (r->given.data == NULL) return WEIR_OK;
  const char *name = r->given_name == NULL ? "plan" : r->given_name;
  WEIR_TRY(
      weir_place_plan_read(p->alloc, p->problem, r->given, name, out, err));
  weir_status s = check_assumed(p, *out, name, err);
  if (s == WEIR_OK) return s;
  weir_place_plan_release(*out);
  *out = NULL;
  return s;
}

static const weir_place_objective *objective_of(const weir_plan *p) {
  const weir_place_objective *o = p->placing->options.objective;
  return o != NULL ? o : weir_place_objective_at(0);
}

static uint64_t moves_of(const weir_plan *p) {
  const weir_placing_options *o = &p->placing->options;
  if (o->portfolio_only) return 0;
  if (o->moves != 0) return o->moves;
  return o->budget_ns != 0 ? UINT64_MAX : weir_place_default_moves(p->problem);
}

/* ---- Objectives with a goal. Each of them is searched for from the plan of
 * least latency, whichever is asked for, and the best by the one that is asked
 * for is taken: so no objective's plan is better by another objective than that
 * one's own. */

typedef struct wanted {
  const weir_place_objective *objective;
  weir_place_options options;
  ending *over;
  int64_t start_ns, each_ns; /* of a budget of time: a share for each */
  int64_t value;             /* of the best so far; INT64_MAX: over a cap */
  bool is_fixed;             /* the moves are the user's, not of the goal */
} wanted;

/* By the goal and the problem alone: whichever objective is asked for, the
 * search for a goal is the same. */
static uint64_t goal_moves(const weir_place_problem *p,
                           const weir_place_objective *goal) {
  uint64_t moves = BALANCE_MOVES + (uint64_t)p->node_count * MORE_MOVES;
  bool more = goal->pipeline && p->node_count <= MORE_NODES;
  return more ? moves : BALANCE_MOVES;
}

static void next_share(wanted *w) {
  if (w->over->at_ns == 0) return;
  w->start_ns += w->each_ns;
  w->over->at_ns = w->start_ns;
}

/* |*out_best|: |plan| is better than the best so far. */
static weir_status weigh(weir_plan *p, wanted *w, weir_place_plan *plan,
                         bool *out_best, weir_error *err) {
  int64_t value;
  weir_place_settle_homes(p->problem, plan);
  WEIR_TRY(
      weir_place_value(p->alloc, p->problem, w->objective, plan, &value, err));
  *out_best =
      value < w->value ||
      (value == w->value && plan->makespan_ns < p->result.plan->makespan_ns);
  if (*out_best) w->value = value;
  return WEIR_OK;
}

/* The plan for |goal| from |start|; p->result has the best. */
static weir_status try_goal(weir_plan *p, wanted *w,
                            const weir_place_objective *goal,
                            const weir_place_plan *start, weir_error *err) {
  bool is_best = false;
  weir_place_result r = {.bounds = p->result.bounds};
  next_share(w);
  if (!w->is_fixed) w->options.moves = goal_moves(p->problem, goal);
  WEIR_TRY(weir_place_plan_create(p->alloc, p->problem, &r.plan, err));
  weir_status s = weir_place_plan_copy(r.plan, start, err);
  if (s == WEIR_OK)
    s = weir_place_improve(p->alloc, p->problem, goal, &w->options, &r, err);
  if (s == WEIR_OK) s = weigh(p, w, r.plan, &is_best, err);
  if (s == WEIR_OK && is_best)
    s = weir_place_plan_copy(p->result.plan, r.plan, err);
  p->result.moves += r.moves;
  weir_place_plan_release(r.plan);
  return s;
}

static bool is_at_floor(const weir_plan *p, const wanted *w) {
  return w->objective->floor != NULL &&
         w->value <= w->objective->floor(&p->result.bounds);
}

/* The one that is asked for first: it may be at its bound. */
static weir_status try_goals(weir_plan *p, wanted *w,
                             const weir_place_plan *start, weir_error *err) {
  const weir_place_objective *o;
  WEIR_TRY(try_goal(p, w, w->objective, start, err));
  for (size_t i = 0; (o = weir_place_objective_at(i)) != NULL; i++)
    if (o->goal != NULL && o != w->objective && w->value != 0 &&
        !is_at_floor(p, w))
      WEIR_TRY(try_goal(p, w, o, start, err));
  return WEIR_OK;
}

static weir_status search_goal(weir_plan *p, const weir_place_options *first,
                               ending *over, weir_error *err) {
  const weir_placing_options *o = &p->placing->options;
  wanted w = {.objective = objective_of(p),
              .options = *first,
              .over = over,
              .value = INT64_MAX};
  weir_place_plan *start = NULL;
  uint32_t shares = 1;
  for (size_t i = 0; weir_place_objective_at(i) != NULL; i++)
    shares += weir_place_objective_at(i)->goal != NULL;
  if (over->at_ns != 0) {
    int64_t now = over->clock->now_ns(over->clock->self);
    w.each_ns = over->at_ns > now ? (over->at_ns - now) / shares : 0;
    w.start_ns = now;
  }
  next_share(&w);
  WEIR_TRY(weir_place_solve(p->alloc, p->problem, first, &p->result, err));
  w.is_fixed = first->moves == 0 || o->moves != 0 || o->budget_ns != 0;
  WEIR_TRY(weir_place_plan_create(p->alloc, p->problem, &start, err));
  bool ignored;
  weir_status s = weir_place_plan_copy(start, p->result.plan, err);
  if (s == WEIR_OK) s = weigh(p, &w, start, &ignored, err);
  if (s == WEIR_OK) s = try_goals(p, &w, start, err);
  weir_place_plan_release(start);
  return s;
}

static weir_status search(weir_plan *p, const weir_place_options *first,
                          ending *over, weir_error *err) {
  const weir_placer *placer =
      first->placer == NULL ? weir_placer_at(0) : first->placer;
  if (objective_of(p)->goal != NULL && placer->searches)
    return search_goal(p, first, over, err);
  return weir_place_solve(p->alloc, p->problem, first, &p->result, err);
}

/* Takes |given| as it is, once it is known to be sound: there may be no other
 * plan that fits, so none is looked for. Under other costs it keeps its devices
 * and its order. */
static weir_status replay(weir_plan *p, weir_place_plan *given,
                          weir_error *err) {
  p->result =
      (weir_place_result){.plan = given, .first_ns = given->makespan_ns};
  bool is_sound =
      weir_place_check(p->alloc, p->problem, given, NULL, NULL) == WEIR_OK;
  if (weir_place_plan_has_other_times(p->problem, given, is_sound)) {
    p->result.retimed_from_ns = given->makespan_ns;
    WEIR_TRY(weir_place_plan_retime(p->alloc, p->problem, given, err));
    p->result.first_ns = given->makespan_ns;
  }
  WEIR_TRY(weir_place_check(p->alloc, p->problem, given, NULL, err));
  return weir_place_bound(p->alloc, p->problem, given->makespan_ns,
                          &p->result.bounds, err);
}

/* A change that gains nothing moves nothing: the plan before is kept if it is
 * as short and still holds. */
static bool keeps(const weir_plan *p, const weir_plan_start *start,
                  const weir_place_plan *given) {
  return start->request != NULL && start->request->change_count > 0 &&
         given != NULL && objective_of(p)->goal == NULL &&
         given->makespan_ns <= p->result.plan->makespan_ns &&
         weir_place_check(p->alloc, p->problem, given, NULL, NULL) == WEIR_OK;
}

static weir_status solve(weir_plan *p, const weir_plan_start *start,
                         weir_error *err) {
  const weir_placing_options *o = &p->placing->options;
  const weir_place_request *r = start->request;
  weir_place_plan *given = NULL;
  ending over = {.clock = o->clock};
  if (r != NULL) over.stop = r->stop;
  if (r != NULL) over.stop_self = r->stop_self;
  if (o->budget_ns != 0)
    over.at_ns = o->clock->now_ns(o->clock->self) +
                 (start->half ? o->budget_ns / 2 : o->budget_ns);
  WEIR_TRY(take_given(p, start, &given, err));
  if (given != NULL && r->replay) return replay(p, given, err);
  weir_place_options options = {.placer = o->placer,
                                .seed = o->seed,
                                .moves = moves_of(p),
                                .given = given};
  if (r != NULL && r->progress != NULL) {
    *r->progress = (weir_place_progress){.best_ns = INT64_MAX};
    options.progress = r->progress;
  }
  if (over.at_ns != 0 || over.stop != NULL) {
    options.stop = is_over;
    options.stop_self = &over;
  }
  weir_status s = search(p, &options, &over, err);
  if (s == WEIR_OK) weir_place_settle_homes(p->problem, p->result.plan);
  if (s == WEIR_OK && keeps(p, start, given))
    s = weir_place_plan_copy(p->result.plan, given, err);
  weir_place_plan_release(given);
  return s;
}

/* Variables with a home of an earlier plan get that as their reason. */
static void tell_homes(weir_plan *p) {
  for (uint32_t n = 0; p->placement != NULL && n < p->problem->node_count; n++)
    if (p->placement->units[n].home &&
        p->result.plan->reason[n] != WEIR_PLACE_REPLAY)
      p->result.plan->reason[n] = WEIR_PLACE_HOME;
}

weir_status weir_plan_solve(weir_plan *p, const weir_plan_start *start,
                            weir_error *err) {
  const weir_placing_options *o = &p->placing->options;
  const weir_place_problem *problem = p->problem;
  WEIR_TRY(solve(p, start, err));
  tell_homes(p);
  p->peaks =
      weir_alloc_array(p->alloc, problem->device_count, sizeof *p->peaks);
  if (p->peaks == NULL)
    return weir_fail_memory(err, problem->device_count * sizeof *p->peaks);
  WEIR_TRY(weir_place_check(p->alloc, problem, p->result.plan, p->peaks, err));
  p->view = (weir_place_view){.alloc = p->alloc,
                              .problem = problem,
                              .plan = p->result.plan,
                              .bounds = &p->result.bounds,
                              .placement = p->placement,
                              .peaks = p->peaks,
                              .first_ns = p->result.first_ns,
                              .retimed_from_ns = p->result.retimed_from_ns,
                              .moves = p->result.moves};
  WEIR_TRY(weir_place_measure(
      &p->view, o->microbatches == 0 ? MICROBATCHES : o->microbatches,
      objective_of(p), &p->figures, err));
  p->view.figures = p->figures;
  p->view.replica = p->placing->replica;
  return WEIR_OK;
}
