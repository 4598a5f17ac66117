/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/reduce/reduce.h"

const weir_op_def weir_op_argmin = {
    .name = "argmin",
    .summary = "Index of the smallest element along an axis.",
    .doc = "The first of several equal ones. NaN counts as smallest.",
    .example = "argmin(x, axis=-1)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "i64"}},
    .types = {{"T", WEIR_NUMBERS}},
    .attrs = {{"axis", WEIR_ATTR_INT, "-1", "axis to look along"},
              {"keepdims", WEIR_ATTR_BOOL, "false",
               "keep the axis with size 1"}},
    .refuses = {"an axis outside [-rank, rank)", "scalars",
                "an axis of no elements, when that is known", "bool"},
    .shape = weir_rule_arg,
    .cost = weir_cost_reduce};
