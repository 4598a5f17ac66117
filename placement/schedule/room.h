/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_ROOM_H_
#define PLACEMENT_ROOM_H_

#include "runtime/base/alloc.h"

/* How many bytes of a device are taken, and when: a step function of time, to
 * which a scheduler adds each placement. The last step holds for ever. Only the
 * latest steps are kept, WEIR_ROOM_STEPS or twice as many: before the first of
 * them nothing can be placed any more. */

enum { WEIR_ROOM_STEPS = 4096 };

typedef struct weir_room_step {
  int64_t from_ns, bytes;
} weir_room_step;

typedef struct weir_room {
  int64_t cap_bytes;
  int64_t past_bytes; /* the peak of steps that were dropped */
  weir_room_step *steps;
  size_t count, capacity;
} weir_room;

/* Empty, with |bytes| taken for ever. false: out of memory. */
bool weir_room_reset(const weir_allocator *alloc, weir_room *room,
                     int64_t bytes);
/* Adds |bytes| (or takes away, if negative) from |from_ns| to |to_ns|;
 * INT64_MAX: for ever. false: out of memory. */
bool weir_room_add(const weir_allocator *alloc, weir_room *room,
                   int64_t from_ns, int64_t to_ns, int64_t bytes);
/* The first moment, not before |ready_ns|, from which on |bytes| more never
 * pass the cap; -1: there is none. */
int64_t weir_room_find(const weir_room *room, int64_t ready_ns, int64_t bytes);
int64_t weir_room_peak(const weir_room *room);
/* Bytes that are free in the end. */
int64_t weir_room_left(const weir_room *room);

#endif
