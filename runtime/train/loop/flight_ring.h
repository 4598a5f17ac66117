/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_FLIGHT_RING_H_
#define WEIR_TRAIN_FLIGHT_RING_H_

#include <stdbool.h>
#include <stdint.h>

/* Batches that are read in order, run in any order and given in order: which
 * one is next for what. A state machine without lock or thread.
 *
 *   may_read -> read     a batch is in its cell, to be run
 *   next_run -> start    somebody runs it
 *   ended                its results are in the cell, or it has failed
 *   may_give -> give     the oldest one is given, its cell is free
 *
 * Batch |n| is in cell n % |room|, so at most |room| of them are in memory: a
 * batch that takes long holds those behind it, which wait with their results.
 * Once a batch has failed, none behind it is started, and those before it are
 * still given: callers see the batches that one run after the other would
 * give. */
typedef struct weir_flight_ring {
  uint64_t read, started, given; /* how many so far */
  uint64_t failed;               /* the first that has; UINT64_MAX: none */
  uint32_t room;
  bool *ended; /* per cell; lent */
} weir_flight_ring;

void weir_flight_ring_init(weir_flight_ring *ring, bool *ended, uint32_t room);
/* Whether there is a free cell, and no batch has failed. */
bool weir_flight_may_read(const weir_flight_ring *ring);
/* The number of the batch that was read. */
uint64_t weir_flight_read(weir_flight_ring *ring);
/* Whether a batch waits for somebody to run it. */
bool weir_flight_may_start(const weir_flight_ring *ring);
/* The number of the batch to be run. */
uint64_t weir_flight_start(weir_flight_ring *ring);
/* A batch that was started has ended. */
void weir_flight_ended(weir_flight_ring *ring, uint64_t batch, bool failed);
/* Whether the oldest batch has ended, or there is a failed one to be told. */
bool weir_flight_may_give(const weir_flight_ring *ring);
/* The number of the batch that is given. */
uint64_t weir_flight_give(weir_flight_ring *ring);
/* How many are in memory. */
uint64_t weir_flight_held(const weir_flight_ring *ring);

#endif
