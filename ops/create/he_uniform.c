/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/create/random.h"
#include "ops/rules.h"

const weir_op_def weir_op_he_uniform = {
    .name = "he_uniform",
    .summary = "Initial weights, uniform within sqrt(6 / fan_in) of 0.",
    .doc = WEIR_FAN_DOC,
    .source = "He et al., ICCV 2015, 1026-1034",
    .example = "var([784, 128], init=he_uniform())",
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_FLOATS, "dtype"}},
    .attrs = {WEIR_RANDOM_ATTRS},
    .refuses = {WEIR_RANDOM_REFUSES},
    .flags = WEIR_OP_RANDOM,
    .shape = weir_rule_attr_shape,
    .cost = weir_cost_math};
