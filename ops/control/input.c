/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape y, same;
  WEIR_TRY(weir_rule_shape_of_attr(ctx, "shape", &y));
  if (weir_rule_has(ctx, 0))
    WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, 0), "the default", &y,
                            "the input", &same));
  return weir_shape_set(ctx, 0, &y);
}

const weir_op_def weir_op_input = {
    .name = "input",
    .summary = "A value that is fed when the graph runs.",
    .doc =
        "Dimensions may be names; a name has one value in a run. An input "
        "with a default may be left unfed.",
    .example = "input(dtype=f32, shape=[batch, 784])",
    .inputs = {{"default", "T", NULL, .optional = true}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES, "dtype"}},
    .attrs = {{"dtype", WEIR_ATTR_DTYPE, NULL, "dtype of the fed tensor"},
              {"shape", WEIR_ATTR_INTS, NULL, "its shape"}},
    .refuses = {"a default of another shape", "negative dimensions",
                "more than 8 dimensions"},
    .instr = WEIR_INSTR_FEED,
    .shape = shape,
    .cost = weir_cost_none};
