/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/create/random.h"
#include "ops/rules.h"

const weir_op_def weir_op_glorot_normal = {
    .name = "glorot_normal",
    .summary =
        "Initial weights, normal with standard deviation sqrt(2 / (fan_in + "
        "fan_out)).",
    .doc = WEIR_FAN_DOC,
    .source = "Glorot and Bengio, AISTATS 2010, 249-256",
    .example = "var([784, 128], init=glorot_normal())",
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_FLOATS, "dtype"}},
    .attrs = {WEIR_RANDOM_ATTRS},
    .refuses = {WEIR_RANDOM_REFUSES},
    .flags = WEIR_OP_RANDOM,
    .shape = weir_rule_attr_shape,
    .cost = weir_cost_math};
