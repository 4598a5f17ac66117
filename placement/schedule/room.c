/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes taken over time (room.h): a sorted array of steps. Most changes are
 * near the end, so a step is found from there and an insertion moves few
 * others. Invariant: times rise strictly, bytes are never negative, one step at
 * least is kept. Cost: O(steps after the change). */
#include "placement/schedule/room.h"

#include <assert.h>
#include <string.h>

#include "runtime/base/vec.h"

bool weir_room_reset(const weir_allocator *alloc, weir_room *room,
                     int64_t bytes) {
  room->past_bytes = 0;
  room->count = 0;
  if (room->capacity == 0 &&
      !weir_vec_grow(alloc, (void **)&room->steps, &room->capacity, 0, 64,
                     sizeof *room->steps))
    return false;
  room->steps[room->count++] = (weir_room_step){0, bytes};
  return true;
}

static void forget_past(weir_room *room) {
  assert(room->count > WEIR_ROOM_STEPS);
  for (size_t i = 0; i < WEIR_ROOM_STEPS; i++)
    if (room->steps[i].bytes > room->past_bytes)
      room->past_bytes = room->steps[i].bytes;
  room->count -= WEIR_ROOM_STEPS;
  memmove(room->steps, room->steps + WEIR_ROOM_STEPS,
          room->count * sizeof *room->steps);
}

/* The step that begins at |ns|, made if need be; the first, if that is later.
 * There is room for one more. */
static size_t cut(weir_room *room, int64_t ns) {
  size_t i = room->count;
  assert(i > 0 && i < room->capacity);
  while (i > 0 && room->steps[i - 1].from_ns > ns) i--;
  if (i == 0) return 0;
  if (room->steps[i - 1].from_ns == ns) return i - 1;
  memmove(room->steps + i + 1, room->steps + i,
          (room->count - i) * sizeof *room->steps);
  room->steps[i] = (weir_room_step){ns, room->steps[i - 1].bytes};
  room->count++;
  return i;
}

bool weir_room_add(const weir_allocator *alloc, weir_room *room,
                   int64_t from_ns, int64_t to_ns, int64_t bytes) {
  if (bytes == 0 || to_ns <= from_ns) return true;
  if (room->count >= 2 * WEIR_ROOM_STEPS) forget_past(room);
  if (room->capacity - room->count < 2 &&
      !weir_vec_grow(alloc, (void **)&room->steps, &room->capacity, room->count,
                     2, sizeof *room->steps))
    return false;
  if (from_ns < room->steps[0].from_ns && bytes > 0) room->past_bytes += bytes;
  size_t first = cut(room, from_ns);
  size_t end = to_ns == INT64_MAX ? room->count : cut(room, to_ns);
  assert(first <= end && end <= room->count);
  for (size_t i = first; i < end; i++) {
    room->steps[i].bytes += bytes;
    assert(room->steps[i].bytes >= 0); /* nothing goes that did not come */
  }
  return true;
}

/* From the end back: the room must last for ever, so the last step that is too
 * full decides, and mostly few are looked at. */
int64_t weir_room_find(const weir_room *room, int64_t ready_ns, int64_t bytes) {
  size_t i = room->count;
  if (bytes > room->cap_bytes) return -1;
  for (; i > 0 && room->steps[i - 1].bytes <= room->cap_bytes - bytes; i--)
    if (room->steps[i - 1].from_ns <= ready_ns) return ready_ns;
  if (i == room->count) return -1;
  return room->steps[i].from_ns > ready_ns ? room->steps[i].from_ns : ready_ns;
}

int64_t weir_room_peak(const weir_room *room) {
  int64_t peak = room->past_bytes;
  for (size_t i = 0; i < room->count; i++)
    if (room->steps[i].bytes > peak) peak = room->steps[i].bytes;
  return peak;
}

int64_t weir_room_left(const weir_room *room) {
  assert(room->count > 0);
  return room->cap_bytes - room->steps[room->count - 1].bytes;
}
