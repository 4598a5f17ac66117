/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/logic/logic.h"

const weir_op_def weir_op_greater = {
    .name = "greater",
    .summary = "Whether a > b, element by element.",
    .example = "greater(a, b)",
    WEIR_ORDER_FIELDS};
