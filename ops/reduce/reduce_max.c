/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/reduce/reduce.h"

const weir_op_def weir_op_reduce_max = {
    .name = "reduce_max",
    .aliases = {"max"},
    .summary = "Largest element of x over some or all axes.",
    .doc =
        "NaN if any element is NaN. Elements that are equal share the "
        "gradient. With two inputs, max(a, b) is the element-wise max.",
    .example = "max(x, axis=-1)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_NUMBERS}},
    .attrs = {{"axis", WEIR_ATTR_INTS, "none", "axes to look along; none: all"},
              {"keepdims", WEIR_ATTR_BOOL, "false",
               "keep those axes with size 1"}},
    .refuses = {"an axis outside [-rank, rank)", "an axis given twice",
                "zero elements, when that is known", "bool"},
    .shape = weir_rule_reduce_some,
    .grad = weir_grad_extreme,
    .cost = weir_cost_reduce};
