/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/rules.h"

const weir_op_def weir_op_no_op = {
    .name = "no_op",
    .summary = "Nothing: a point for control edges.",
    .example = "no_op()",
    .instr = WEIR_INSTR_NONE,
    .shape = weir_rule_none,
    .cost = weir_cost_none};
