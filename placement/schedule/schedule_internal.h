/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_SCHEDULE_INTERNAL_H_
#define PLACEMENT_SCHEDULE_INTERNAL_H_

#include "placement/schedule/room.h"
#include "placement/schedule/schedule.h"
#include "placement/schedule/timeline.h"

/* Inside the list scheduler: schedule.c chooses and places a node at a time,
 * schedule_memory.c keeps the caps, schedule_sends.c the senders of copies. */

/* The node that could not be placed when the last run met a dead end. */
typedef struct weir_schedule_short {
  uint32_t node, device; /* NONE: there was no dead end */
  int64_t bytes;         /* so many more would have done */
} weir_schedule_short;

/* Memory taken on each device, and until when; see schedule_memory.c. */
typedef struct weir_schedule_memory {
  weir_room *rooms;      /* per device */
  int64_t *pinned_bytes; /* per device: of nodes that have no choice */
  int64_t *group_bytes;  /* per group: resident, of all its nodes */
  bool *reserved;        /* per node: its resident bytes are counted */
  /* Constants, where there are any: those of a group are |group_constant| from
   * group_first[g], and |held| has a bit for each on each device, |words| words
   * a constant; |pinned| is |held| at the beginning. */
  uint32_t *group_first, *group_constant;
  uint64_t *held, *pinned;
  int64_t *last_ns;    /* per tensor: last use where it is kept */
  uint32_t *kept_at;   /* per tensor: the device where it takes no memory */
  uint32_t *uses_left; /* per tensor */
  int64_t *copy_last;  /* per copy: last use there; -1: it is gone */
  size_t copy_capacity;
  uint32_t *waiting;         /* per node: inputs to be made */
  bool *placed;              /* per node */
  uint32_t *place;           /* per node: in the order */
  weir_schedule_short blame; /* of the last dead end */
} weir_schedule_memory;

/* A tensor whose producer is placed. */
typedef struct weir_made {
  int64_t ready_ns;
  int64_t bytes;
  uint32_t device;
  uint32_t copies; /* its latest copy + 1 */
} weir_made;

/* A tensor of the node in hand. */
typedef struct weir_wanted {
  int64_t ready_ns, bytes;
  uint32_t tensor, from;
} weir_wanted;

/* A device for one node. */
typedef struct weir_fit {
  uint32_t device, at; /* the number of the candidate */
  int64_t cost, start, end, idle;
  int64_t early_ns;    /* it cannot end before */
  int64_t bytes, room; /* with caps: it adds; would be left */
  int64_t resident;    /* with caps: of |bytes|, for ever */
  int64_t short_bytes; /* with caps: so many more would do */
  bool possible;
} weir_fit;

typedef struct weir_schedule_sends weir_schedule_sends;

struct weir_scheduler {
  const weir_allocator *alloc;
  const weir_place_problem *p;
  weir_timeline *devices, *links;
  weir_made *made;     /* per tensor */
  uint32_t *copy_next; /* per copy: an earlier one of its tensor + 1 */
  size_t next_capacity;
  uint32_t *group_device; /* per group, NONE: open */
  int64_t *promised;      /* per link, then per device that sends, while one
                             node is looked at */
  uint32_t *touched;      /* those with a promise */
  uint32_t touched_count;
  /* The node in hand: its inputs, the devices that it may go to, and when each
   * input is there: [input * candidate_count + candidate], see |there|. */
  weir_wanted *inputs;
  weir_fit *candidates;
  int64_t *there;
  uint32_t input_count, candidate_count;
  int64_t made_ns;              /* the last input is made */
  uint32_t *slot;               /* per device: candidate + 1, 0: none */
  weir_schedule_memory *memory; /* NULL: no cap can be met */
  weir_schedule_sends *sends;   /* NULL: no copy keeps its sender busy */
  int64_t send_ns; /* the node in hand sends for so long after its end */
};

/* |there|: the end of a copy that exists, or WEIR_NOT_THERE, or ~end of one
 * that would be made. */
#define WEIR_NOT_THERE INT64_MIN

/* weir_schedule_run, one time through the order. */
weir_status weir_schedule_run_once(weir_scheduler *s,
                                   const weir_schedule_input *input,
                                   weir_place_plan *plan, bool *out_complete,
                                   weir_error *err);
/* The best device of |node| by the rule of |input|; not |possible| if there is
 * none. |must|: the device that it is to be; NONE. */
weir_fit weir_schedule_choose(weir_scheduler *s,
                              const weir_schedule_input *input,
                              weir_place_plan *plan, uint32_t node,
                              uint32_t must);
/* Places |node| there; false: out of memory. */
bool weir_schedule_settle(weir_scheduler *s, weir_place_plan *plan,
                          uint32_t node, const weir_fit *fit);
/* The error of a node that has no device, caps aside. */
weir_status weir_schedule_no_device(const weir_scheduler *s, uint32_t node,
                                    weir_error *err);

#endif
