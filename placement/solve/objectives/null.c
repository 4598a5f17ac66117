/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/solve/objective.h"

/* The objective to copy. It has the same value for all plans, so the search
 * keeps the plan that it began with. It is in no list: the tests build it. */

static int64_t value(const weir_place_figures *f) {
  (void)f;
  return 0;
}

static int64_t of_all(const weir_split *split) {
  (void)split;
  return 0;
}

static const weir_balance_goal goal = {.of_all = of_all};

const weir_place_objective weir_objective_null = {
    .name = "null",
    .summary = "a value that is the same for all plans",
    .label = "null",
    .key = "null",
    .unit = WEIR_PLACE_NS,
    .value = value,
    .goal = &goal};
