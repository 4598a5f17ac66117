/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/create/random.h"

const weir_op_def weir_op_lecun_normal = {
    .name = "lecun_normal",
    .summary =
        "Initial weights, normal with standard deviation sqrt(1 / fan_in).",
    .source = "LeCun, Bottou, Orr and Mueller, Efficient BackProp, 1998",
    .example = "var([784, 128], init=lecun_normal())",
    WEIR_FAN_FIELDS};
