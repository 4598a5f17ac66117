/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/create/random.h"

const weir_op_def weir_op_glorot_uniform = {
    .name = "glorot_uniform",
    .summary =
        "Initial weights, uniform within sqrt(6 / (fan_in + fan_out)) of 0.",
    .source = "Glorot and Bengio, AISTATS 2010, 249-256",
    .example = "var([784, 128], init=glorot_uniform())",
    WEIR_FAN_FIELDS};
