/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/solve/objective.h"

static int64_t value(const weir_place_figures *f) {
  return f->latency_ns;
}

const weir_place_objective weir_objective_latency = {
    .name = "latency",
    .summary = "the time of one batch",
    .key = "latency_ns",
    .unit = WEIR_PLACE_NS,
    .value = value};
