/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/create/random.h"

const weir_op_def weir_op_truncated_normal = {
    .name = "truncated_normal",
    .summary =
        "Normal random numbers at most two standard deviations from the mean.",
    .example = "truncated_normal(0, 0.1, shape=[2, 3])",
    WEIR_NORMAL_FIELDS("standard deviation before the tails are cut")};
