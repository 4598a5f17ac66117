/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/rules.h"

const weir_op_def weir_op_fill = {
    .name = "fill",
    .summary = "A shape filled with one number.",
    .doc = "Converted as cast does it.",
    .example = "fill([2, 3], 0.5)",
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES, "dtype"}},
    .attrs = {{"shape", WEIR_ATTR_INTS, NULL, "shape of the result"},
              {"value", WEIR_ATTR_NUMBER, NULL, "the number"},
              {"dtype", WEIR_ATTR_DTYPE, "f32", "dtype of the result"}},
    .refuses = {"negative dimensions", "more than 8 dimensions"},
    .shape = weir_rule_attr_shape,
    .cost = weir_cost_bytes};
