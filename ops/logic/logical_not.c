/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/rules.h"

const weir_op_def weir_op_logical_not = {
    .name = "logical_not",
    .aliases = {"not"},
    .summary = "Whether x is false, element by element.",
    .example = "logical_not(x)",
    .inputs = {{"x", "bool"}},
    .outputs = {{"y", "bool"}},
    .refuses = {"dtypes other than bool"},
    .flags = WEIR_OP_ELEMENTWISE,
    .shape = weir_rule_unary,
    .cost = weir_cost_unary};
