/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/logic/logic.h"

const weir_op_def weir_op_logical_or = {
    .name = "logical_or",
    .aliases = {"or"},
    .summary = "Whether a or b is true, element by element.",
    .example = "logical_or(a, b)",
    WEIR_LOGICAL_FIELDS};
