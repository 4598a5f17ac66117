/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/create/random.h"

const weir_op_def weir_op_he_normal = {
    .name = "he_normal",
    .summary =
        "Initial weights, normal with standard deviation sqrt(2 / fan_in).",
    .source = "He et al., ICCV 2015, 1026-1034",
    .example = "var([784, 128], init=he_normal())",
    WEIR_FAN_FIELDS};
