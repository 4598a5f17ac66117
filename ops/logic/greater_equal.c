/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/logic/logic.h"

const weir_op_def weir_op_greater_equal = {
    .name = "greater_equal",
    .summary = "Whether a >= b, element by element.",
    .example = "greater_equal(a, b)",
    WEIR_ORDER_FIELDS};
