/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_SCHEDULE_MARK_H_
#define PLACEMENT_SCHEDULE_MARK_H_

#include "placement/schedule/schedule.h"

/* The same beginning for many schedules: the state after the first nodes of an
 * order (weir_schedule_go_on) is kept, and what was placed since taken back.
 * Not for a scheduler with caps. */

/* The state after the first nodes of an order. */
typedef struct weir_schedule_mark weir_schedule_mark;

/* Errors: W6001. */
weir_status weir_schedule_mark_create(const weir_scheduler *s,
                                      weir_schedule_mark **out_mark,
                                      weir_error *err);
void weir_schedule_mark_release(weir_schedule_mark *mark); /* NULL-safe */
/* Keeps the state of |s| and |plan|. */
void weir_schedule_keep(const weir_scheduler *s, const weir_place_plan *plan,
                        weir_schedule_mark *mark);
/* Takes back everything that was placed since; with the same |plan|. */
void weir_schedule_take_back(weir_scheduler *s, const weir_schedule_mark *mark,
                             weir_place_plan *plan);

#endif
