/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/logic/logic.h"

const weir_op_def weir_op_logical_xor = {
    .name = "logical_xor",
    .aliases = {"xor"},
    .summary = "Whether just one of a and b is true, element by element.",
    .example = "logical_xor(a, b)",
    WEIR_LOGICAL_FIELDS};
