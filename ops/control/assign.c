/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape y;
  WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, 1), "value",
                          weir_shape_in(ctx, 0), "the variable", &y));
  return weir_shape_set(ctx, 0, &y);
}

const weir_op_def weir_op_assign = {
    .name = "assign",
    .summary = "Gives a variable a new value.",
    .doc =
        "The result is the new value. The variable changes once the whole step "
        "has succeeded; reads of this step see the old value.",
    .example = "assign(v, value)",
    .inputs = {{"ref", "T"}, {"value", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES}},
    .refuses = {"a ref that is no variable",
                "a value of another shape or dtype",
                "a second assignment in one step"},
    .flags = WEIR_OP_EFFECT,
    .instr = WEIR_INSTR_VAR_COMMIT,
    .shape = shape,
    .cost = weir_cost_bytes};
