/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/reduce/reduce.h"

const weir_op_def weir_op_reduce_min = {
    .name = "reduce_min",
    .aliases = {"min"},
    .summary = "Smallest element of x over some or all axes.",
    .doc =
        "NaN if any element is NaN. Elements that are equal share the "
        "gradient. With two inputs, min(a, b) is the element-wise min.",
    .example = "min(x, axis=-1)",
    WEIR_EXTREME_FIELDS};
