/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/solve/assign.h"

static uint32_t choose(weir_assigner *a, uint32_t node) {
  return weir_assign_pick(a, node, 0, 0);
}

static weir_status solve(const weir_allocator *alloc,
                         const weir_place_problem *problem,
                         const weir_place_options *options,
                         weir_place_result *out, weir_error *err) {
  static const weir_assign_rule rule = {.label = "first device",
                                        .choose = choose};
  return weir_assign_solve(&rule, alloc, problem, options, out, err);
}

const weir_placer weir_placer_first = {
    .name = "first",
    .summary = "the first device that a node may have",
    .solve = solve};
