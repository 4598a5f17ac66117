/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_BOUNDS_ENERGY_H_
#define WEIR_PLACEMENT_BOUNDS_ENERGY_H_

#include "placement/problem.h"

/* A lower bound from the work that must lie in an interval. */

/* The energy test's problem, on |machines| equal devices. */
typedef struct weir_energy_test {
  const weir_place_problem *problem;
  const int64_t *cost; /* of each node */
  int64_t machines;
  int64_t lower_ns, upper_ns; /* the bound that is known, the plan */
  int64_t *head, *tail; /* least time before and after each node: improved */
  uint64_t *scratch;    /* (nodes + 1) * (words of nodes + 4), zeros */
} weir_energy_test;

/* A bound of at least |lower_ns|, at most |upper_ns|. */
int64_t weir_place_energy_bound(const weir_energy_test *test);

#endif
