/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_ADDER_H_
#define TESTS_SIM_ADDER_H_

#include "runtime/dist/engine.h"

/* An engine with one number, for simulations of drivers that share it.
 *
 * A process has one adder_store; each lane has an engine over it. A program
 * whose graph_hash is ADDER_ADDS adds 1 to the number, as a step that reads it
 * at its start and writes it at its commit: two at once would lose one. Each
 * step fetches the number that it has read, as fetch 0. */

enum { ADDER_READS = 1, ADDER_ADDS = 2 };

typedef struct adder_store {
  uint64_t number;
  bool made;
  uint32_t users; /* sessions */
  uint32_t first_values;
} adder_store;

/* Hands |event| to the task after a while. */
typedef struct adder_calls {
  void *self;
  void (*later)(void *self, weir_engine_event *event);
} adder_calls;

/* Both are lent. NULL: no memory. */
weir_engine *adder_create(const adder_calls *calls, adder_store *store);

#endif
