/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

const weir_op_def weir_op_sign = {
    .name = "sign",
    .summary = "-1, 0 or 1 as x is below, at or above 0.",
    .doc = "sign(NaN) is NaN. The gradient is 0.",
    .example = "sign(x)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_NUMBERS}},
    .refuses = {"bool"},
    .flags = WEIR_OP_ELEMENTWISE,
    .shape = weir_rule_unary,
    .grad = weir_grad_zero,
    .cost = weir_cost_unary};
