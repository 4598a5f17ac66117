/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_PLACE_INTERNAL_H_
#define PLACEMENT_PLACE_INTERNAL_H_

#include "placement/place.h"

/* What one plan begins with, beside its placing. */
typedef struct weir_plan_start {
  const weir_place_request
      *request; /* its |sink|, |stop| and |given|; or NULL */
  bool given;  /* |request->given|, or |request->before| carried over, counts */
  bool wishes; /* every wish must name a node of the graph */
} weir_plan_start;

/* place.c: the plan of |graph| with the homes that |placing| has so far. */
weir_status weir_plan_make(const weir_placing *placing, const weir_graph *graph,
                           const weir_plan_start *start, weir_plan **out_plan,
                           weir_error *err);

/* place_solve.c: fills the result, peaks, figures and view of |plan|, whose
 * problem is there. Errors: W3012-W3016, W4013, W6001. */
weir_status weir_plan_solve(weir_plan *plan, const weir_plan_start *start,
                            weir_error *err);

/* place_homes.c: takes the homes of |plan|'s variables. Errors: W6001. */
weir_status weir_homes_take(weir_placing *placing, const weir_plan *plan,
                            weir_error *err);
/* Gives the variables of |goal| that have none a home by rules and bytes:
 * largest first onto the emptiest device that a rule allows. Errors: W3002,
 * W3012, W6001. */
weir_status weir_homes_fill(weir_placing *placing, const weir_goal *goal,
                            weir_error *err);

/* place_what_if.c: applies |request->changes| to |*cluster|, which is replaced,
 * and gives those that concern nodes as wishes, in |arena|. Errors: W3020,
 * W3040, W6001. */
weir_status weir_place_change(const weir_place_request *request,
                              weir_arena *arena, weir_cluster **cluster,
                              weir_place_wish *wishes, uint32_t *count,
                              weir_error *err);
/* The plan of |before| for |problem|, which has the same nodes and maybe other
 * devices and links, as it was: it may break a rule there. |*out| is NULL when
 * a node cannot be where it was. Errors: W6001. */
weir_status weir_place_carry(const weir_plan *before,
                             const weir_place_problem *problem,
                             weir_place_plan **out, weir_error *err);

#endif
