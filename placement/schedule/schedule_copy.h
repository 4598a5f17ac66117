/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_SCHEDULE_COPY_H_
#define PLACEMENT_SCHEDULE_COPY_H_

#include "placement/schedule/schedule_internal.h"

/* Copies on the timelines of the list scheduler. */

/* A copy's times in ns: until it is there, on its link (0: that takes any
 * number), and of its sender. */
typedef struct weir_copy_times {
  int64_t whole, on_link, send;
} weir_copy_times;

/* Those of |bytes| over |link|. */
weir_copy_times weir_schedule_copy_times(const weir_place_link *link,
                                         int64_t bytes);
/* When a copy that its sender has begun at |ready_ns| gets |link|, after those
 * that are promised for the node in hand. */
int64_t weir_schedule_link_start(const weir_scheduler *s, uint32_t link,
                                 int64_t ready_ns,
                                 const weir_copy_times *times);
/* Takes its times from its link and its sender. */
void weir_schedule_take_copy(weir_scheduler *s, const weir_place_copy *copy,
                             const weir_copy_times *times);
/* Adds it to the plan and to the copies of its tensor; false: out of memory. */
bool weir_schedule_add_copy(weir_scheduler *s, weir_place_plan *plan,
                            const weir_place_copy *copy);

#endif
