/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_SCHEDULE_SENDS_H_
#define PLACEMENT_SCHEDULE_SENDS_H_

#include "placement/schedule/schedule_internal.h"

/* The senders' part of copies in the list scheduler: which time of its device a
 * send takes. There is nothing of it where no link has a sender's part. */

typedef enum weir_send_rule {
  WEIR_SENDS_GUESSED,  /* copies leave at once, senders pay when they can */
  WEIR_SENDS_RESERVED, /* directly after the node, before the next one */
  WEIR_SENDS_LATE      /* in the sender's next gap */
} weir_send_rule;

/* Time that is taken on the timeline of a tensor's device for its sends. */
typedef struct weir_send_time {
  int64_t next_ns, left_ns;
} weir_send_time;

struct weir_schedule_sends {
  weir_send_rule rule;
  bool is_again;          /* devices are chosen, and the reasons known */
  const uint32_t *device; /* per node, lent: RESERVED */
  uint32_t *chosen;       /* per node: by the first of two schedules */
  weir_send_time *times;  /* per tensor: RESERVED */
  int64_t *start;         /* of the copies in weir_scheduler.there */
  uint32_t *stamp;        /* per device: the last tensor that counted it + 1 */
};

/* Whether copies keep their senders busy: the times of a node then depend on
 * the devices of those that read its tensors. */
bool weir_schedule_has_sends(const weir_scheduler *s);
/* |cells|: of weir_scheduler.there. false: out of memory. */
bool weir_schedule_sends_create(weir_scheduler *s, size_t cells);
void weir_schedule_sends_release(weir_scheduler *s); /* there may be none */
/* weir_schedule_run where there are sends. */
weir_status weir_schedule_sends_run(weir_scheduler *s,
                                    const weir_schedule_input *input,
                                    weir_place_plan *plan, bool *out_complete,
                                    weir_error *err);
/* All nodes have devices: |device|, lent for the run. */
void weir_schedule_sends_know(weir_scheduler *s, const uint32_t *device);
/* Counts in weir_scheduler.send_ns how long |node|, whose candidates are
 * listed, sends. */
void weir_schedule_sends_count(weir_scheduler *s, uint32_t node);
/* |node| has ended: its sends are next. */
void weir_schedule_sends_begin(weir_scheduler *s, uint32_t node,
                               int64_t end_ns);
/* When a copy of |tensor| begins that takes |send_ns| of its sender's time, at
 * |ready_ns| or later, after those that are promised for the node in hand.
 * Returns whether it is a gap of the sender, which is to be promised. */
bool weir_schedule_sends_find(const weir_scheduler *s, uint32_t tensor,
                              int64_t ready_ns, int64_t send_ns,
                              int64_t *out_start);
/* Takes the sender's time for |copy|; and gives it back, where the timelines
 * are restored: the copies from the last one back. */
void weir_schedule_sends_take(weir_scheduler *s, const weir_place_copy *copy,
                              int64_t send_ns);
void weir_schedule_sends_give_back(weir_scheduler *s,
                                   const weir_place_copy *copy);

#endif
