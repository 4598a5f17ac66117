/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_FAKE_H_
#define TESTS_SIM_FAKE_H_

#include "runtime/dist/engine.h"
#include "runtime/dist/link/link.h"

/* An engine without tensors, for the simulator.
 *
 * A program is a random dataflow over tasks, made from a number: node i hashes
 * up to two earlier nodes, the step's number and its task's variable. A program
 * that writes gives each task's variable a new value. Values of other tasks
 * come by the real rendezvous, every third one as bulk frames. fake_expect()
 * computes the same in one process. */

enum { FAKE_NODES = 24, FAKE_TASKS = 6 };

typedef struct fake_node {
  uint32_t task;
  int in[2]; /* nodes before it; -1: none */
} fake_node;

typedef struct fake_program {
  uint32_t tasks, count;
  bool writes;
  uint32_t fail_ppm; /* of nodes: fail at some steps */
  uint64_t seed;
  fake_node nodes[FAKE_NODES];
} fake_program;

/* The same program for the same number. */
void fake_program_make(fake_program *program, uint64_t seed, uint32_t tasks);
/* Whether |task| has nodes. */
bool fake_has_work(const fake_program *program, uint32_t task);
/* The last node's value, and new variables; false when a node fails, whose
 * number is |*out_node|. |step|: the number for random ops. */
bool fake_expect(const fake_program *program, uint64_t step,
                 const uint64_t *variables, uint64_t *out_value,
                 uint64_t *new_variables, uint32_t *out_node);
uint64_t fake_first_variable(uint32_t task);

/* Bugs. */
enum {
  FAKE_PLANT_LATE = 1,     /* a late frame of a dropped step is kept */
  FAKE_PLANT_OLD_EPOCH = 2 /* values of an old session are kept */
};

/* The world's calls. */
typedef struct fake_calls {
  void *self;
  /* Hands |event| to the task after a while. */
  void (*later)(void *self, weir_engine_event *event);
  /* A session without a lost peer or step ends, and values are left over. */
  void (*left)(void *self);
  void (*committed)(void *self, uint64_t epoch, uint64_t step, bool yes);
  /* Whether a step gets stuck here: a kernel that never ends. */
  bool (*stuck)(void *self, uint64_t step);
} fake_calls;

weir_status fake_engine_create(const weir_allocator *alloc,
                               const fake_calls *calls, uint32_t plant,
                               weir_engine **out_engine);
/* A bulk frame of |peer|, a place. */
weir_status fake_engine_bulk(weir_engine *engine, uint32_t peer,
                             const weir_net_frame *frame, weir_error *err);
/* Does the work that the transport left behind: chunks that have been sent. */
void fake_engine_pump(weir_engine *engine);
/* Whether ENDED may be told: nothing of the session is held. */
bool fake_engine_may_end(weir_engine *engine);
/* Values that nobody has taken, steps and programs. */
size_t fake_engine_left(const weir_engine *engine);

#endif
