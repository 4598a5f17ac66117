/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

const weir_op_def weir_op_round = {
    .name = "round",
    .summary = "Nearest integer, halves to the even one, element by element.",
    .doc = "round(2.5) is 2, round(3.5) is 4. The gradient is 0.",
    .source = "IEEE 754-2019, roundTiesToEven",
    .example = "round(x)",
    WEIR_FLOAT_UNARY_FIELDS,
    .grad = weir_grad_zero,
    .cost = weir_cost_unary};
