/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_WORLD_H_
#define TESTS_SIM_WORLD_H_

#include "runtime/net/sim_faults.h"
#include "tests/sim/fake.h"

/* A cluster in one thread: tasks, a driver and its user, over a simulated
 * network, all made from a seed.
 *
 * The user registers programs and runs steps, compares each value with one
 * process, and begins again with a larger epoch when a session fails. First
 * faults are on; then all are healed and the rest must go well. */

/* Bugs to be found. */
typedef enum world_plant {
  WORLD_PLANT_NONE,
  WORLD_PLANT_STEP,   /* a step's number is used twice */
  WORLD_PLANT_COMMIT, /* commit before all are prepared */
  WORLD_PLANT_LATE,   /* drop(step) forgets a late frame */
  WORLD_PLANT_WAIT,   /* a deadline without owner */
  WORLD_PLANT_EPOCH,  /* a slot of an old epoch */
  WORLD_PLANT_KEPT,   /* a commit is reported before all have it */
  WORLD_PLANT_COUNT
} world_plant;

const char *world_plant_name(world_plant plant);

/* Faults that the world causes itself, beside those of the network. */
typedef enum world_fault {
  WORLD_KILL_TASK,
  WORLD_KILL_DRIVER,
  WORLD_NODE_FAILS,
  WORLD_STUCK,
  WORLD_FATE,   /* a prepared step decided without the driver */
  WORLD_CANCEL, /* a step that the user gave up */
  WORLD_UNSURE, /* a session failed with a commit that some did not confirm */
  WORLD_FAULT_COUNT
} world_fault;

const char *world_fault_name(world_fault fault);

typedef struct world_result {
  bool ok;
  char why[600];  /* the broken promise */
  uint64_t trace; /* hash of all that happened */
  uint64_t steps, commits, sessions;
  uint64_t net[WEIR_NET_FAULT_COUNT], own[WORLD_FAULT_COUNT];
} world_result;

/* Runs a seed. |verbose|: prints each event. */
void world_run(uint64_t seed, world_plant plant, bool verbose,
               world_result *result);

#endif
