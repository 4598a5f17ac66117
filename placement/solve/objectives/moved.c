/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/solve/objective.h"

static int64_t value(const weir_place_figures *f) {
  return f->moved_bytes;
}

static int64_t of_all(const weir_split *split) {
  return split->moved;
}

static const weir_balance_goal goal = {.of_all = of_all};

const weir_place_objective weir_objective_moved = {
    .name = "moved",
    .summary = "bytes copied between devices",
    .label = "moved",
    .key = "moved_bytes",
    .unit = WEIR_PLACE_BYTES,
    .value = value,
    .goal = &goal};
