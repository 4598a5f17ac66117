/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_PLAN_H_
#define PLACEMENT_PLAN_H_

#include "placement/problem.h"

/* Where each node runs and when, by the model of problem.h. */

/* Why a node is where it is. The set is closed; texts are in plan.c. */
typedef enum weir_place_reason {
  WEIR_PLACE_EFT,       /* it finishes first there */
  WEIR_PLACE_ONLY,      /* one device is allowed or has a kernel */
  WEIR_PLACE_COLOCATED, /* with an earlier node of its group */
  WEIR_PLACE_SEARCH,    /* local search moved it there */
  WEIR_PLACE_NO_ROOM,   /* where it would finish sooner there was no room */
  WEIR_PLACE_REPLAY,    /* a plan that was given says so */
  WEIR_PLACE_HOME,      /* a variable, which lives there for all programs */
  WEIR_PLACE_REASONS
} weir_place_reason;

/* A tensor's way from one device to another: its sender works for it from
 * |start_ns| on, and its link brings it from weir_place_copy_begin to |end_ns|.
 */
typedef struct weir_place_copy {
  uint32_t tensor, from, to, link;
  int64_t start_ns, end_ns;
} weir_place_copy;

/* When |copy| gets its link, which it may have waited for. */
static inline int64_t weir_place_copy_begin(const weir_place_problem *problem,
                                            const weir_place_copy *copy) {
  return copy->end_ns - weir_place_copy_ns(&problem->links[copy->link],
                                           problem->tensor_bytes[copy->tensor]);
}

typedef struct weir_place_plan {
  const weir_allocator *alloc;
  uint32_t node_count, copy_count;
  uint32_t *device; /* per node */
  int64_t *start_ns, *end_ns;
  uint8_t *reason; /* weir_place_reason */
  weir_place_copy *copies;
  size_t copy_capacity;
  int64_t makespan_ns;
  const char *placer; /* which one made it; static text */
  bool assumed; /* read from JSON: kernels that do not exist were assumed */
} weir_place_plan;

/* An empty plan for |problem|. Errors: W6001. */
weir_status weir_place_plan_create(const weir_allocator *alloc,
                                   const weir_place_problem *problem,
                                   weir_place_plan **out_plan, weir_error *err);
void weir_place_plan_release(weir_place_plan *plan); /* NULL-safe */
/* Makes |dst|, a plan for the same problem, equal to |src|. Errors: W6001. */
weir_status weir_place_plan_copy(weir_place_plan *dst,
                                 const weir_place_plan *src, weir_error *err);
/* Bytes of each device for ever, with |device| per node: what its nodes keep,
 * and each constant that one of them reads. |stamp|: room for device_count
 * numbers. Saturates. O(nodes + reads). */
void weir_place_resident(const weir_place_problem *problem,
                         const uint32_t *device, int64_t *bytes,
                         uint32_t *stamp);
/* The first node on |at| that reads |constant|; NONE: it is not there. */
uint32_t weir_place_reader(const weir_place_problem *problem,
                           const uint32_t *device, uint32_t constant,
                           uint32_t at);
/* The constants that are copied before the first step, each once to a device:
 * how many, and their bytes. |stamp| as above. */
uint32_t weir_place_start_copies(const weir_place_problem *problem,
                                 const uint32_t *device, uint32_t *stamp,
                                 int64_t *out_bytes);
/* Puts the home of each constant where its first reader is, if it has no group,
 * may be there and takes no time: that device then needs no copy. */
void weir_place_settle_homes(const weir_place_problem *problem,
                             weir_place_plan *plan);
/* "eft", "only", "colocated", "search", "memory", "replay", "home". */
const char *weir_place_reason_text(weir_place_reason reason);
/* The same as a sentence: "it finishes first there". */
const char *weir_place_reason_words(weir_place_reason reason);

#endif
