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

const weir_op_def weir_op_state = {
    .name = "state",
    .summary = "A variable that training leaves alone.",
    .doc =
        "Like var: counters, running means, values that live from step to step "
        "without a gradient.",
    .example = "state(init=zeros(), shape=[10])",
    .inputs = {{"init", "T", .optional = true}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES, "dtype"}},
    .attrs = {{"shape", WEIR_ATTR_INTS, NULL, "its shape"},
              {"dtype", WEIR_ATTR_DTYPE, "f32", "its dtype"}},
    .refuses = {"an initial value of another shape", "negative dimensions",
                "more than 8 dimensions"},
    .instr = WEIR_INSTR_VAR_READ,
    .shape = shape,
    .cost = weir_cost_none};
