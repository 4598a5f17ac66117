/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_SEARCH_H_
#define PLACEMENT_SEARCH_H_

#include "placement/bounds/bounds.h"
#include "placement/plan.h"
#include "placement/solve/assign.h"

/* From a problem to the best plan that a budget finds.
 *
 * First a portfolio: list scheduling by several ranks, everything on one device
 * of each class, a plan that is given, and up to 4096 nodes the order as
 * numbered; the best is kept, so the answer is never worse than any of these by
 * the model. What cannot be better is not made: a rank that gives the same
 * numbers, one device whose work alone is longer. Then, with a budget, local
 * search over priorities and devices: one move changes a few nodes' priority or
 * device and schedules again; worse plans are accepted for a while (late
 * acceptance, Burke and Bykov, EJOR 258 (2017) 70-78). Where all devices are
 * equal and copies are free, each plan is also packed from the end and again
 * from the start, which never makes it longer (forward-backward improvement, Li
 * and Willis, EJOR 56 (1992) 370-379). The search stops when the lower bound is
 * reached.
 *
 * Moves are drawn from a seeded sequence: the same budget in moves gives the
 * same plan. */

typedef struct weir_place_options {
  weir_placer placer; /* not SEARCH: its assignment, in order of mean rank */
  uint64_t moves;     /* of local search; 0: portfolio only */
  uint64_t seed;
  const weir_place_plan *given; /* joins the portfolio; may be NULL */
  /* Asked now and then; true ends the search. May be NULL. */
  bool (*stop)(void *self);
  void *stop_self;
} weir_place_options;

typedef struct weir_place_result {
  weir_place_plan *plan;
  weir_place_bounds bounds;
  uint64_t moves;   /* made */
  int64_t first_ns; /* makespan of the portfolio's best */
} weir_place_result;

/* Moves that a search without a budget makes, by the size of the problem. */
uint64_t weir_place_default_moves(const weir_place_problem *problem);

/* |options| may be NULL: the portfolio only. |out_result->plan| is to be
 * released by the caller. Errors: W3012-W3014, W6001. */
weir_status weir_place_solve(const weir_allocator *alloc,
                             const weir_place_problem *problem,
                             const weir_place_options *options,
                             weir_place_result *out_result, weir_error *err);

#endif
