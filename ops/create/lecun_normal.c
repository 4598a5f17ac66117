/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/create/random.h"
#include "ops/rules.h"

const weir_op_def weir_op_lecun_normal = {
    .name = "lecun_normal",
    .summary =
        "Initial weights, normal with standard deviation sqrt(1 / fan_in).",
    .doc = WEIR_FAN_DOC,
    .source = "LeCun, Bottou, Orr and Mueller, Efficient BackProp, 1998",
    .example = "var([784, 128], init=lecun_normal())",
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_FLOATS, "dtype"}},
    .attrs = {WEIR_RANDOM_ATTRS},
    .refuses = {WEIR_RANDOM_REFUSES},
    .flags = WEIR_OP_RANDOM,
    .shape = weir_rule_attr_shape,
    .cost = weir_cost_math};
