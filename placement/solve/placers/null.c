/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/solve/assign.h"

/* The placer to copy. It gives each node the last device that it may have, so
 * that a test can tell it from `first`. It is in no list: the tests build it.
 *
 * A placer that weighs costs has a solve of its own, and for that search.c is
 * the example; one that only chooses devices needs a rule. */

static uint32_t choose(weir_assigner *a, uint32_t node) {
  for (uint32_t d = a->p->device_count; d-- > 0;)
    if (weir_assign_may(a, node, d)) return d;
  return WEIR_PLACE_NONE;
}

static weir_status solve(const weir_allocator *alloc,
                         const weir_place_problem *problem,
                         const weir_place_options *options,
                         weir_place_result *out, weir_error *err) {
  static const weir_assign_rule rule = {.label = "null", .choose = choose};
  return weir_assign_solve(&rule, alloc, problem, options, out, err);
}

const weir_placer weir_placer_null = {
    .name = "null",
    .summary = "the last device that a node may have",
    .solve = solve};
