/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_DESCEND_H_
#define PLACEMENT_DESCEND_H_

#include "placement/plan.h"

/* The end of a search: single moves until none makes the step shorter. */

typedef struct weir_descent {
  const weir_allocator *alloc;
  const weir_place_problem *problem;
  int64_t floor_ns; /* no plan is shorter */
  /* Per device: false: until a move is made, none to there need be tried. NULL:
   * all are. */
  const bool *try_device;
  bool (*stop)(void *self); /* asked now and then; may be NULL */
  void *stop_self;
} weir_descent;

/* Moves a node with its group to another device, as an explanation does
 * (mover.h), while that makes |plan| shorter. When it returns, no move does,
 * unless it was stopped, or took as much work as eight explanations of all
 * nodes of the largest problem that has one. Does nothing for problems that are
 * larger. Errors: W6001. */
weir_status weir_place_descend(const weir_descent *descent,
                               weir_place_plan *plan, weir_error *err);

#endif
