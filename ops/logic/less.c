/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/rules.h"

const weir_op_def weir_op_less = {
    .name = "less",
    .summary = "Whether a < b, element by element.",
    .doc = "False where either is NaN.",
    .example = "less(a, b)",
    .inputs = {{"a", "T"}, {"b", "T"}},
    .outputs = {{"y", "bool"}},
    .types = {{"T", WEIR_NUMBERS}},
    .refuses = {"shapes that do not broadcast", "inputs of two dtypes", "bool"},
    .flags = WEIR_OP_ELEMENTWISE,
    .shape = weir_rule_binary,
    .cost = weir_cost_unary};
