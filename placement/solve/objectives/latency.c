/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/solve/objective.h"

static int64_t value(const weir_place_figures *f) {
  return f->latency_ns;
}

static int64_t bound(const weir_place_figures *f) {
  return f->latency_bound_ns;
}

/* No bound_key: a plan's JSON has the bound as its lower_bound_ns. */
const weir_place_objective weir_objective_latency = {
    .name = "latency",
    .summary = "the time of one batch",
    .key = "latency_ns",
    .unit = WEIR_PLACE_NS,
    .value = value,
    .bound = bound};
