/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/reduce/reduce.h"

const weir_op_def weir_op_reduce_max = {
    .name = "reduce_max",
    .aliases = {"max"},
    .summary = "Largest element of x over some or all axes.",
    .doc =
        "NaN if any element is NaN. Elements that are equal share the "
        "gradient. With two inputs, max(a, b) is the element-wise max.",
    .example = "max(x, axis=-1)",
    WEIR_EXTREME_FIELDS};
