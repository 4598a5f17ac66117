/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_MOVER_H_
#define PLACEMENT_MOVER_H_

#include "placement/schedule/schedule_mark.h"

/* A plan scheduled again with one node elsewhere.
 *
 * The node's group goes with it, all other nodes stay where they are, and nodes
 * have their turns by the starts of the plan: so the move is the difference
 * between the two. Explanations show the steps that moves would give, and the
 * last descent of a search makes moves until none is better: both by this.
 *
 *   begin, take(plan), try(node, device), ... try, take(another), ..., end
 *
 * One scheduler and its memory serve all moves; moves of nodes in the order of
 * |order| share the schedule of all that comes before them. One thread. */

typedef struct weir_mover {
  const weir_allocator *alloc;
  const weir_place_problem *p;
  const weir_place_plan *of; /* lent */
  weir_scheduler *scheduler;
  weir_schedule_mark *mark; /* NULL: memory is capped, so nothing is shared */
  weir_place_plan *plan;    /* of the last move */
  int64_t *key, *tail, *least_tail;
  uint32_t *device, *order, *place, *heap, *waiting;
  uint32_t *next;    /* per node: the next of its group, in a ring */
  uint32_t prefix;   /* so many nodes of |order| are placed at the mark */
  bool is_prefix_ok; /* there is such a mark */
  uint64_t steps;    /* nodes that were scheduled, in all */
} weir_mover;

/* Whether all moves of a plan take a fraction of a second: nodes^2 * devices is
 * at most two million. Explanations of all nodes, and the last descent of a
 * search, are for these problems. */
bool weir_mover_is_cheap(const weir_place_problem *problem);
/* |problem| is borrowed. |m| is to be ended also after a failure. Errors:
 * W6001. */
weir_status weir_mover_begin(weir_mover *m, const weir_allocator *alloc,
                             const weir_place_problem *problem,
                             weir_error *err);
void weir_mover_end(weir_mover *m);
/* Moves are of |plan| from now on, which must not change until the next. */
void weir_mover_take(weir_mover *m, const weir_place_plan *plan);
/* Whether |node| and all of its group may be on |device|. */
bool weir_mover_may(const weir_mover *m, uint32_t node, uint32_t device);
/* Fills |m->plan| with |node| and its group on |device|, which they may have.
 * |*out_complete| is false when the step would not be below |stop_ns| (0: any
 * is wanted) or there was no room; NULL: W3013 then. Errors: W3012-W3014,
 * W6001. */
weir_status weir_mover_try(weir_mover *m, uint32_t node, uint32_t device,
                           int64_t stop_ns, bool *out_complete,
                           weir_error *err);

#endif
