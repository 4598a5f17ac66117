/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/create/random.h"

const weir_op_def weir_op_lecun_uniform = {
    .name = "lecun_uniform",
    .summary = "Initial weights, uniform within sqrt(3 / fan_in) of 0.",
    .source = "LeCun, Bottou, Orr and Mueller, Efficient BackProp, 1998",
    .example = "var([784, 128], init=lecun_uniform())",
    WEIR_FAN_FIELDS};
