/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/solve/assign.h"

/* a->next: the device after the last one that was taken. */
static uint32_t choose(weir_assigner *a, uint32_t node) {
  uint32_t d = weir_assign_pick(a, node, a->next, 0);
  if (d != WEIR_PLACE_NONE) a->next = (d + 1) % a->p->device_count;
  return d;
}

static weir_status solve(const weir_allocator *alloc,
                         const weir_place_problem *problem,
                         const weir_place_options *options,
                         weir_place_result *out, weir_error *err) {
  static const weir_assign_rule rule = {.label = "round robin",
                                        .choose = choose};
  return weir_assign_solve(&rule, alloc, problem, options, out, err);
}

const weir_placer weir_placer_round_robin = {
    .name = "round_robin", .summary = "devices in turn", .solve = solve};
