/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

const weir_op_def weir_op_zeros_like = {
    .name = "zeros_like",
    .summary = "Zeros in the shape and dtype of x.",
    .doc = "Reads no element of x.",
    .example = "zeros_like(x)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES}},
    .flags = WEIR_OP_ROWS,
    .shape = weir_rule_unary,
    .grad = weir_grad_zero,
    .cost = weir_cost_bytes};
