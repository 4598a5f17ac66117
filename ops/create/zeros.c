/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/rules.h"

const weir_op_def weir_op_zeros = {
    .name = "zeros",
    .summary = "Zeros in a shape.",
    .example = "zeros([2, 3])",
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES, "dtype"}},
    .attrs = {{"shape", WEIR_ATTR_INTS, NULL, "shape of the result"},
              {"dtype", WEIR_ATTR_DTYPE, "f32", "dtype of the result"}},
    .refuses = {"negative dimensions", "more than 8 dimensions"},
    .shape = weir_rule_attr_shape,
    .cost = weir_cost_bytes};
