/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/reduce/reduce.h"

const weir_op_def weir_op_argmax = {
    .name = "argmax",
    .summary = "Index of the largest element along an axis.",
    .doc = "The first of several equal ones. NaN counts as largest.",
    .example = "argmax(x, axis=-1)",
    WEIR_ARG_FIELDS};
