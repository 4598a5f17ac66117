/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/rules.h"

const weir_op_def weir_op_group = {
    .name = "group",
    .summary = "Nothing, but after its inputs: a name for several nodes.",
    .example = "group(a, b)",
    .inputs = {{"xs", NULL, NULL, .variadic = true}},
    .instr = WEIR_INSTR_NONE,
    .shape = weir_rule_none,
    .cost = weir_cost_none};
