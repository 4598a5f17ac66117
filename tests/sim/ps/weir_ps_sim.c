/* SPDX-License-Identifier: Apache-2.0 */
/* weir-ps-sim: jobs of parameter servers in one thread, from seeds.
 *
 *   weir-ps-sim --seed N [--plant NAME]   one seed, with all that happens
 *   weir-ps-sim --seeds N   seeds 1 to N; a fault that never came, or a
 *                           failpoint that was never reached, fails
 *   weir-ps-sim --plants N  each planted bug must be found in N seeds */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/ps/ps_world.h"

static int one(uint64_t seed, weir_ps_failpoint plant) {
  ps_result r;
  ps_world_run(seed, plant, true, &r);
  printf("seed %" PRIu64 ": %s %s\n", seed, r.ok ? "good" : "BAD", r.why);
  return r.ok ? 0 : 1;
}

static void add(ps_result *sum, const ps_result *r) {
  sum->events += r->events;
  sum->pushes += r->pushes;
  sum->end_ms += r->end_ms;
  for (int i = 0; i < PS_FAULT_COUNT; i++) sum->faults[i] += r->faults[i];
  for (int i = 0; i < PS_SAW_COUNT; i++) sum->sights[i] += r->sights[i];
  for (int i = 0; i < WEIR_PS_FP_COUNT; i++) {
    sum->reached[i] += r->reached[i];
    sum->died[i] += r->died[i];
  }
}

static int zero(const char *name, uint64_t count) {
  printf("  %-34s %" PRIu64 "%s\n", name, count, count == 0 ? " NEVER" : "");
  return count == 0;
}

static int coverage(const ps_result *sum) {
  int zeros = 0;
  for (int i = 0; i < PS_FAULT_COUNT; i++)
    zeros += zero(ps_fault_name((ps_fault)i), sum->faults[i]);
  for (int i = 0; i < PS_SAW_COUNT; i++)
    zeros += zero(ps_sight_name((ps_sight)i), sum->sights[i]);
  for (int i = 0; i < WEIR_PS_FP_COUNT; i++)
    zeros +=
        zero(weir_ps_failpoint_name((weir_ps_failpoint)i), sum->reached[i]);
  if (zeros > 0) printf("BAD: %d things never came\n", zeros);
  return zeros;
}

static int many(uint64_t seeds, weir_ps_failpoint plant) {
  ps_result sum = {0};
  uint64_t bad = 0;
  for (uint64_t seed = 1; seed <= seeds; seed++) {
    ps_result r, again;
    ps_world_run(seed, plant, false, &r);
    if (r.ok && seed % 50 == 0) {
      ps_world_run(seed, plant, false, &again);
      if (again.trace != r.trace) {
        printf("seed %" PRIu64 ": BAD two runs differ\n", seed);
        bad++;
      }
    }
    if (!r.ok) {
      printf("seed %" PRIu64 ": BAD mode %d %s\n", seed, r.mode, r.why);
      bad++;
    }
    add(&sum, &r);
  }
  printf("%" PRIu64 " seeds, %" PRIu64 " events, %" PRIu64 " updates, %" PRIu64
         " s of the worlds' time, %" PRIu64 " bad\n",
         seeds, sum.events, sum.pushes, sum.end_ms / 1000, bad);
  return coverage(&sum) != 0 || bad > 0;
}

static int plants(uint64_t seeds) {
  int missing = 0;
  for (int i = WEIR_PS_FP_BUG_ACK_EARLY; i < WEIR_PS_FP_COUNT; i++) {
    ps_result r = {.ok = true};
    uint64_t seed = 0;
    while (r.ok && seed < seeds)
      ps_world_run(++seed, (weir_ps_failpoint)i, false, &r);
    printf("%s: %s%" PRIu64 " %s\n",
           weir_ps_failpoint_name((weir_ps_failpoint)i),
           r.ok ? "NOT found, seeds to " : "seed ", seed, r.why);
    missing += r.ok;
  }
  return missing;
}

int main(int argc, char **argv) {
  uint64_t seed = 0, seeds = 0, planted = 0;
  weir_ps_failpoint plant = WEIR_PS_FP_COUNT;
  for (int i = 1; i + 1 < argc; i += 2) {
    uint64_t n = strtoull(argv[i + 1], NULL, 10);
    if (strcmp(argv[i], "--seed") == 0) seed = n;
    if (strcmp(argv[i], "--seeds") == 0) seeds = n;
    if (strcmp(argv[i], "--plants") == 0) planted = n;
    for (int k = 0; strcmp(argv[i], "--plant") == 0 && k < WEIR_PS_FP_COUNT;
         k++)
      if (strcmp(argv[i + 1], weir_ps_failpoint_name((weir_ps_failpoint)k)) ==
          0)
        plant = (weir_ps_failpoint)k;
  }
  if (seed != 0) return one(seed, plant);
  if (seeds != 0) return many(seeds, plant);
  if (planted != 0) return plants(planted) != 0;
  fprintf(stderr,
          "weir-ps-sim --seed N [--plant NAME] | --seeds N | --plants N\n");
  return 2;
}
