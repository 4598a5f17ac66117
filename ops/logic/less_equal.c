/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/logic/logic.h"

const weir_op_def weir_op_less_equal = {
    .name = "less_equal",
    .summary = "Whether a <= b, element by element.",
    .example = "less_equal(a, b)",
    WEIR_ORDER_FIELDS};
