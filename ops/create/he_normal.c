/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/rules.h"

const weir_op_def weir_op_he_normal = {
    .name = "he_normal",
    .summary =
        "Initial weights, normal with standard deviation sqrt(2 / fan_in).",
    .doc =
        "The numbers depend on the seeds of graph and node and on the step, "
        "not on threads or devices. Fans: [in, out] of a matrix; i kh kw and o "
        "kh kw of a filter [o, i, kh, kw].",
    .source = "He et al., ICCV 2015, 1026-1034",
    .example = "var([784, 128], init=he_normal())",
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_FLOATS, "dtype"}},
    .attrs = {{"shape", WEIR_ATTR_INTS, NULL, "shape of the result"},
              {"dtype", WEIR_ATTR_DTYPE, "f32", "dtype of the result"},
              {"seed", WEIR_ATTR_INT, "0",
               "added to the seed of graph and node"}},
    .refuses = {"negative dimensions", "more than 8 dimensions",
                "integer dtypes"},
    .flags = WEIR_OP_RANDOM,
    .shape = weir_rule_attr_shape,
    .cost = weir_cost_math};
