/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/reduce/reduce.h"

const weir_op_def weir_op_argmin = {
    .name = "argmin",
    .summary = "Index of the smallest element along an axis.",
    .doc = "The first of several equal ones. NaN counts as smallest.",
    .example = "argmin(x, axis=-1)",
    WEIR_ARG_FIELDS};
