/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/rules.h"

const weir_op_def weir_op_logical_xor = {
    .name = "logical_xor",
    .aliases = {"xor"},
    .summary = "Whether just one of a and b is true, element by element.",
    .example = "logical_xor(a, b)",
    .inputs = {{"a", "bool"}, {"b", "bool"}},
    .outputs = {{"y", "bool"}},
    .refuses = {"shapes that do not broadcast", "dtypes other than bool"},
    .flags = WEIR_OP_ELEMENTWISE | WEIR_OP_COMMUTATIVE,
    .shape = weir_rule_binary,
    .cost = weir_cost_unary};
