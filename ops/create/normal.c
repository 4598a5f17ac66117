/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/create/random.h"
#include "ops/rules.h"

const weir_op_def weir_op_normal = {
    .name = "normal",
    .summary = "Random numbers of the normal distribution.",
    .doc = WEIR_RANDOM_DOC,
    .source = WEIR_RANDOM_SOURCE,
    .example = "normal(0, 0.1, shape=[2, 3])",
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_FLOATS, "dtype"}},
    .attrs = {{"mean", WEIR_ATTR_FLOAT, "0.0", "mean"},
              {"stddev", WEIR_ATTR_FLOAT, "1.0", "standard deviation"},
              WEIR_RANDOM_ATTRS},
    .refuses = {"a negative stddev", "numbers that are not finite",
                WEIR_RANDOM_REFUSES},
    .flags = WEIR_OP_RANDOM,
    .shape = weir_rule_normal,
    .cost = weir_cost_math};
