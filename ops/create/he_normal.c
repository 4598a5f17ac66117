/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/create/random.h"
#include "ops/rules.h"

const weir_op_def weir_op_he_normal = {
    .name = "he_normal",
    .summary =
        "Initial weights, normal with standard deviation sqrt(2 / fan_in).",
    .doc = WEIR_FAN_DOC,
    .source = "He et al., ICCV 2015, 1026-1034",
    .example = "var([784, 128], init=he_normal())",
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_FLOATS, "dtype"}},
    .attrs = {WEIR_RANDOM_ATTRS},
    .refuses = {WEIR_RANDOM_REFUSES},
    .flags = WEIR_OP_RANDOM,
    .shape = weir_rule_attr_shape,
    .cost = weir_cost_math};
