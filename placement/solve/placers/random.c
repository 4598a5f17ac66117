/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/solve/assign.h"
#include "runtime/base/mix.h"

static uint32_t choose(weir_assigner *a, uint32_t node) {
  uint32_t count = 0;
  for (uint32_t d = 0; d < a->p->device_count; d++)
    count += weir_assign_may(a, node, d);
  if (count == 0) return WEIR_PLACE_NONE;
  return weir_assign_pick(a, node, 0, weir_mix_below(&a->random, count));
}

static weir_status solve(const weir_allocator *alloc,
                         const weir_place_problem *problem,
                         const weir_place_options *options,
                         weir_place_result *out, weir_error *err) {
  static const weir_assign_rule rule = {.label = "random", .choose = choose};
  return weir_assign_solve(&rule, alloc, problem, options, out, err);
}

const weir_placer weir_placer_random = {
    .name = "random",
    .args = "SEED",
    .summary = "a device drawn from the seed",
    .solve = solve};
