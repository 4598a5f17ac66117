/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_SCHEDULE_H_
#define PLACEMENT_SCHEDULE_H_

#include "placement/plan.h"

/* List scheduling: nodes in a given order, each at once on the device where it
 * finishes first (earliest finish time, with insertion into gaps), its tensors
 * copied as links allow. One pass, O((nodes + uses) * devices); two where
 * copies keep their senders busy and devices are open.
 *
 * A scheduler holds the working memory, so that a search can schedule many
 * orders without allocating. One thread at a time. Source of the rule: HEFT,
 * Topcuoglu, Hariri and Wu, IEEE TPDS 13 (2002) 260-274. */

typedef struct weir_scheduler weir_scheduler;

/* |problem| is borrowed. Errors: W6001. */
weir_status weir_scheduler_create(const weir_allocator *alloc,
                                  const weir_place_problem *problem,
                                  weir_scheduler **out_scheduler,
                                  weir_error *err);
void weir_scheduler_release(weir_scheduler *s); /* NULL-safe */
/* Whether caps can matter: else memory costs the scheduler nothing. */
bool weir_schedule_is_capped(const weir_scheduler *s);

/* Which of the devices that have room is taken. */
typedef enum weir_schedule_rule {
  WEIR_SCHEDULE_EFT,   /* where the node finishes first */
  WEIR_SCHEDULE_LEAST, /* where it adds the fewest bytes, then EFT */
  WEIR_SCHEDULE_ROOM,  /* where most room is left, then EFT */
  WEIR_SCHEDULE_RULES
} weir_schedule_rule;

typedef struct weir_schedule_input {
  const uint32_t *order;  /* all nodes, topologically */
  const uint32_t *device; /* per node: where it must go, NONE: choose; NULL */
  int64_t stop_ns; /* give up once the step cannot end before; 0: never */
  /* Per node: no plan ends sooner than so long after the node's end. It only
   * lets a schedule be given up earlier. NULL: zeros. */
  const int64_t *tail_ns;
  /* Nodes of one cluster follow the first of them where they may and no other
   * rule says where they go. Per node: its cluster; NULL: there are none. Per
   * cluster, for the run: the device, begins as NONE. */
  const uint32_t *cluster;
  uint32_t *cluster_device;
  /* With memory caps only. Nodes that do not fit wait, so |order| is a wish. */
  weir_schedule_rule rule;
  int64_t keep_bytes; /* resident bytes leave so much free */
  bool spill;         /* tensors may be sent to another device and back */
} weir_schedule_input;

/* Fills |plan|. Memory caps are kept at every moment. |*out_complete| (may be
 * NULL) is false when it gave up at stop_ns or found no room; the plan is then
 * not to be used. Errors: W3012, W3014, W6001; W3013 only where |out_complete|
 * is NULL. */
weir_status weir_schedule_run(weir_scheduler *s,
                              const weir_schedule_input *input,
                              weir_place_plan *plan, bool *out_complete,
                              weir_error *err);

/* No node is placed yet. */
void weir_schedule_begin(weir_scheduler *s, weir_place_plan *plan);
/* Places the nodes of |input->order| from |first| up to |last|, after those
 * before |first|, which are in |plan|. Not for a scheduler with caps; with
 * sends all devices are given. Otherwise as weir_schedule_run. */
weir_status weir_schedule_go_on(weir_scheduler *s,
                                const weir_schedule_input *input,
                                uint32_t first, uint32_t last,
                                weir_place_plan *plan, bool *out_complete,
                                weir_error *err);
/* ---- Ranks and orders */

typedef enum weir_rank_rule {
  WEIR_RANK_MEAN,  /* costs and copies averaged over classes and links */
  WEIR_RANK_BEST,  /* the cheapest class, no copies */
  WEIR_RANK_WORST, /* the dearest class, copies */
  WEIR_RANK_RULES
} weir_rank_rule;

#endif
