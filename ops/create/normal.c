/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/create/random.h"

const weir_op_def weir_op_normal = {
    .name = "normal",
    .summary = "Random numbers of the normal distribution.",
    .example = "normal(0, 0.1, shape=[2, 3])",
    WEIR_NORMAL_FIELDS("standard deviation")};
