/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/solve/objective.h"

/* In a steady pipeline a batch leaves once per period, the largest load of a
 * device (load.h). Work spread evenly over all devices bounds it from below. */

static int64_t value(const weir_place_figures *f) {
  return f->period_ns;
}

static int64_t bound(const weir_place_figures *f) {
  return f->period_bound_ns;
}

static int64_t lowest(const weir_place_bounds *b) {
  return b->area_ns;
}

static int64_t of_device(const weir_split *split, uint32_t device) {
  return split->load[device];
}

static const weir_balance_goal goal = {.of_device = of_device};

const weir_place_objective weir_objective_throughput = {
    .name = "throughput",
    .summary = "the period of a pipeline",
    .label = "period",
    .key = "period_ns",
    .bound_key = "period_bound_ns",
    .unit = WEIR_PLACE_NS,
    .value = value,
    .bound = bound,
    .floor = lowest,
    .goal = &goal,
    .pipeline = true};
