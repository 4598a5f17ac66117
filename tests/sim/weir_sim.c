/* SPDX-License-Identifier: Apache-2.0 */
/* weir-sim: clusters of drivers and tasks in one thread, from seeds.
 *
 *   weir-sim --seed N            one seed, with all that happens
 *   weir-sim --seeds N           seeds 1 to N; a fault that never came fails
 *   weir-sim --seeds N --plant NAME   a bug that must be found in them */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/world.h"

static int one(uint64_t seed, world_plant plant) {
  world_result r;
  world_run(seed, plant, true, &r);
  printf("seed %" PRIu64 ": %s %s\n", seed, r.ok ? "good" : "BAD", r.why);
  return r.ok ? 0 : 1;
}

static int counts(const uint64_t *net, const uint64_t *own) {
  int zeros = 0;
  for (int i = 0; i < WEIR_NET_FAULT_COUNT; i++) {
    printf("  %-12s %" PRIu64 "\n", weir_net_fault_name((weir_net_fault)i),
           net[i]);
    /* Values here are too small to fill a queue. */
    if (net[i] == 0 && i != WEIR_NET_FAULT_QUEUE_FULL) zeros++;
  }
  for (int i = 0; i < WORLD_FAULT_COUNT; i++) {
    printf("  %-12s %" PRIu64 "\n", world_fault_name((world_fault)i), own[i]);
    if (own[i] == 0) zeros++;
  }
  if (zeros > 0) printf("BAD: %d kinds of faults never came\n", zeros);
  return zeros > 0;
}

static int many(uint64_t seeds, world_plant plant) {
  uint64_t net[WEIR_NET_FAULT_COUNT] = {0}, own[WORLD_FAULT_COUNT] = {0};
  uint64_t steps = 0, commits = 0, sessions = 0, bad = 0;
  for (uint64_t seed = 1; seed <= seeds; seed++) {
    world_result r, again;
    world_run(seed, plant, false, &r);
    if (r.ok && plant == WORLD_PLANT_NONE && seed % 50 == 0) {
      world_run(seed, plant, false, &again);
      if (again.trace != r.trace) {
        printf("seed %" PRIu64 ": BAD two runs differ\n", seed);
        bad++;
      }
    }
    if (!r.ok) {
      printf("seed %" PRIu64 ": BAD %s\n", seed, r.why);
      bad++;
      if (plant != WORLD_PLANT_NONE) {
        printf("%s found\n", world_plant_name(plant));
        return 0;
      }
    }
    for (int i = 0; i < WEIR_NET_FAULT_COUNT; i++) net[i] += r.net[i];
    for (int i = 0; i < WORLD_FAULT_COUNT; i++) own[i] += r.own[i];
    steps += r.steps;
    commits += r.commits;
    sessions += r.sessions;
  }
  if (plant != WORLD_PLANT_NONE) {
    printf("%s NOT found in %" PRIu64 " seeds\n", world_plant_name(plant),
           seeds);
    return 1;
  }
  printf("%" PRIu64 " seeds, %" PRIu64 " sessions, %" PRIu64 " steps, %" PRIu64
         " commits, %" PRIu64 " bad\n",
         seeds, sessions, steps, commits, bad);
  return counts(net, own) != 0 || bad > 0;
}

int main(int argc, char **argv) {
  uint64_t seed = 0, seeds = 0;
  world_plant plant = WORLD_PLANT_NONE;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--seed") == 0) seed = strtoull(argv[i + 1], NULL, 10);
    if (strcmp(argv[i], "--seeds") == 0)
      seeds = strtoull(argv[i + 1], NULL, 10);
    for (int k = 0; strcmp(argv[i], "--plant") == 0 && k < WORLD_PLANT_COUNT;
         k++)
      if (strcmp(argv[i + 1], world_plant_name((world_plant)k)) == 0)
        plant = (world_plant)k;
  }
  if (seed != 0) return one(seed, plant);
  if (seeds != 0) return many(seeds, plant);
  fprintf(stderr, "weir-sim --seed N | --seeds N [--plant NAME]\n");
  return 2;
}
