/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/logic/logic.h"

const weir_op_def weir_op_equal = {
    .name = "equal",
    .summary = "Whether a == b, element by element.",
    .example = "equal(a, b)",
    WEIR_EQUALITY_FIELDS};
