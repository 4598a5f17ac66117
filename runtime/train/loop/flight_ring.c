/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/loop/flight_ring.h"

#include <assert.h>

/* Invariant: given <= started <= read <= given + room. */

void weir_flight_ring_init(weir_flight_ring *r, bool *ended, uint32_t room) {
  *r = (weir_flight_ring){.failed = UINT64_MAX, .room = room, .ended = ended};
}

uint64_t weir_flight_held(const weir_flight_ring *r) {
  return r->read - r->given;
}

bool weir_flight_may_read(const weir_flight_ring *r) {
  return r->failed == UINT64_MAX && weir_flight_held(r) < r->room;
}

uint64_t weir_flight_read(weir_flight_ring *r) {
  assert(weir_flight_held(r) < r->room);
  r->ended[r->read % r->room] = false;
  return r->read++;
}

bool weir_flight_may_start(const weir_flight_ring *r) {
  return r->started < r->read && r->started < r->failed;
}

uint64_t weir_flight_start(weir_flight_ring *r) {
  assert(weir_flight_may_start(r));
  return r->started++;
}

void weir_flight_ended(weir_flight_ring *r, uint64_t batch, bool failed) {
  assert(r->given <= batch && batch < r->started);
  r->ended[batch % r->room] = true;
  if (failed && batch < r->failed) r->failed = batch;
}

bool weir_flight_may_give(const weir_flight_ring *r) {
  return r->given < r->started && r->ended[r->given % r->room];
}

uint64_t weir_flight_give(weir_flight_ring *r) {
  assert(weir_flight_may_give(r));
  return r->given++;
}
