/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

const weir_op_def weir_op_floor = {
    .name = "floor",
    .summary = "Largest integer not above x, element by element.",
    .doc = "The gradient is 0.",
    .example = "floor(x)",
    WEIR_FLOAT_UNARY_FIELDS,
    .grad = weir_grad_zero,
    .cost = weir_cost_unary};
