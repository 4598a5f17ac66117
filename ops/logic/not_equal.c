/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/rules.h"

const weir_op_def weir_op_not_equal = {
    .name = "not_equal",
    .summary = "Whether a != b, element by element.",
    .doc = "NaN differs from everything, itself too.",
    .example = "not_equal(a, b)",
    .inputs = {{"a", "T"}, {"b", "T"}},
    .outputs = {{"y", "bool"}},
    .types = {{"T", WEIR_ALL_TYPES}},
    .refuses = {"shapes that do not broadcast", "inputs of two dtypes"},
    .flags = WEIR_OP_ELEMENTWISE | WEIR_OP_COMMUTATIVE,
    .shape = weir_rule_binary,
    .cost = weir_cost_unary};
