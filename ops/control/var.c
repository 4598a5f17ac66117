/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape y, same;
  WEIR_TRY(weir_rule_shape_of_attr(ctx, "shape", &y));
  if (weir_rule_has(ctx, 0))
    WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, 0), "the initial value", &y,
                            "the variable", &same));
  return weir_shape_set(ctx, 0, &y);
}

const weir_op_def weir_op_var = {
    .name = "var",
    .summary = "A variable: a value that lives from step to step.",
    .doc =
        "A step sees the value at its start. assign and assign_add change "
        "it once the whole step has succeeded. The initial value is "
        "computed once, before the first step. An initialiser written in "
        "the call gets the variable's shape and dtype.",
    .example = "var([784, 128], init=glorot_uniform())",
    .inputs = {{"init", "T", .optional = true}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES, "dtype"}},
    .attrs = {{"shape", WEIR_ATTR_INTS, NULL, "its shape"},
              {"dtype", WEIR_ATTR_DTYPE, "f32", "its dtype"},
              {"trainable", WEIR_ATTR_BOOL, "true",
               "whether training changes it"}},
    .refuses = {"an initial value of another shape", "negative dimensions",
                "more than 8 dimensions"},
    .instr = WEIR_INSTR_VAR_READ,
    .shape = shape,
    .cost = weir_cost_none};
