/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/logic/logic.h"

const weir_op_def weir_op_less = {
    .name = "less",
    .summary = "Whether a < b, element by element.",
    .example = "less(a, b)",
    WEIR_ORDER_FIELDS};
