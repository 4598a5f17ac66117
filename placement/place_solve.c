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
#include "placement/check.h"
#include "placement/place_internal.h"
#include "placement/place_what_if.h"
#include "placement/plan_read.h"
#include "placement/report/figures.h"

enum {
  BALANCE_MOVES = 700000, /* of another objective's, which cost less */
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

static weir_status take_given(const weir_plan *p, const weir_plan_start *start,
                              weir_place_plan **out, weir_error *err) {
  const weir_place_request *r = start->request;
  *out = NULL;
  if (r == NULL || !start->given) return WEIR_OK;
  if (r->change_count > 0)
    return weir_place_carry(r->before, p->problem, out, err);
  if (r->given.data == NULL) return WEIR_OK;
  return weir_place_plan_read(p->alloc, p->problem, r->given,
                              r->given_name == NULL ? "plan" : r->given_name,
                              out, err);
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

/* For another objective than latency the portfolio is only the beginning. */
static weir_status search(weir_plan *p, const weir_place_options *first,
                          weir_error *err) {
  const weir_placing_options *o = &p->placing->options;
  weir_place_options options = *first;
  if (objective_of(p)->goal != NULL) options.moves = 0;
  WEIR_TRY(weir_place_solve(p->alloc, p->problem, &options, &p->result, err));
  bool fixed = first->moves == 0 || o->moves != 0 || o->budget_ns != 0;
  options.moves = fixed ? first->moves : BALANCE_MOVES;
  return weir_place_improve(p->alloc, p->problem, objective_of(p), &options,
                            &p->result, err);
}

/* Takes |given| as it is, once it is known to be sound: there may be no other
 * plan that fits, so none is looked for. */
static weir_status replay(weir_plan *p, weir_place_plan *given,
                          weir_error *err) {
  p->result =
      (weir_place_result){.plan = given, .first_ns = given->makespan_ns};
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
  if (over.at_ns != 0 || over.stop != NULL) {
    options.stop = is_over;
    options.stop_self = &over;
  }
  weir_status s = search(p, &options, err);
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
                              .moves = p->result.moves};
  WEIR_TRY(weir_place_measure(
      &p->view, o->microbatches == 0 ? MICROBATCHES : o->microbatches,
      objective_of(p), &p->figures, err));
  p->view.figures = p->figures;
  return WEIR_OK;
}
