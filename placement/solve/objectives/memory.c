/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/solve/objective.h"

/* A split does not know times, so its peak is taken as variables plus all
 * outputs of a device; the true peak of each candidate decides (objective.c).
 */

static int64_t value(const weir_place_figures *f) {
  return f->peak_bytes;
}

static int64_t of_device(const weir_split *split, uint32_t device) {
  return split->bytes[device] + split->outputs[device];
}

static const weir_balance_goal goal = {.of_device = of_device};

const weir_place_objective weir_objective_memory = {
    .name = "memory",
    .summary = "the largest peak of a device",
    .label = "largest peak",
    .key = "peak_bytes",
    .unit = WEIR_PLACE_BYTES,
    .value = value,
    .goal = &goal};
