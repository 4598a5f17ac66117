/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_DUMP_MOVES_H_
#define WEIR_PLACEMENT_DUMP_MOVES_H_

#include "placement/report/dump.h"

typedef struct weir_place_mover weir_place_mover;

/* The plan scheduled again with one node elsewhere. */

/* |*out_all| for |view->alternatives|, the caller's to free with |view->alloc|;
 * NULL for a problem that this would take seconds for. Errors: W6001. */
weir_status weir_place_alternatives_create(const weir_place_view *view,
                                           weir_place_alternative **out_all,
                                           weir_error *err);

/* |m| is to be ended whatever is returned. Errors: W6001. */
weir_status weir_place_mover_begin(weir_place_mover *m,
                                   const weir_place_view *view,
                                   weir_error *err);

/* Gives back what |m| holds. */
void weir_place_mover_end(weir_place_mover *m);

/* Moves |node| and its group to |device|; the order of the plan is kept.
 * Errors: W3012-W3014, W6001. */
weir_status weir_place_mover_move(weir_place_mover *m, uint32_t node,
                                  uint32_t device, weir_error *err);

/* Whether |node| and all of its group may be on |device|. */
bool weir_place_group_may(const weir_place_problem *problem, uint32_t node,
                          uint32_t device);

#endif
