/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/logic/logic.h"

const weir_op_def weir_op_not_equal = {
    .name = "not_equal",
    .summary = "Whether a != b, element by element.",
    .example = "not_equal(a, b)",
    WEIR_EQUALITY_FIELDS};
