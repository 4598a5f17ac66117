/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

const weir_op_def weir_op_ceil = {
    .name = "ceil",
    .summary = "Smallest integer not below x, element by element.",
    .doc = "The gradient is 0.",
    .example = "ceil(x)",
    WEIR_FLOAT_UNARY_FIELDS,
    .grad = weir_grad_zero,
    .cost = weir_cost_unary};
