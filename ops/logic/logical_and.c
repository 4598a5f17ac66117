/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/logic/logic.h"

const weir_op_def weir_op_logical_and = {
    .name = "logical_and",
    .aliases = {"and"},
    .summary = "Whether both a and b are true, element by element.",
    .example = "logical_and(a, b)",
    WEIR_LOGICAL_FIELDS};
