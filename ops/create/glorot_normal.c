/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/create/random.h"

const weir_op_def weir_op_glorot_normal = {
    .name = "glorot_normal",
    .summary =
        "Initial weights, normal with standard deviation sqrt(2 / (fan_in + "
        "fan_out)).",
    .source = "Glorot and Bengio, AISTATS 2010, 249-256",
    .example = "var([784, 128], init=glorot_normal())",
    WEIR_FAN_FIELDS};
