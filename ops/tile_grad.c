/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/rules.h"
#include "ops/slicing.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape x, y, same;
  WEIR_TRY(weir_rule_shape_of_attr(ctx, "shape", &x));
  WEIR_TRY(weir_rule_tile(ctx, &x, &y));
  WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, 0), "dy", &y,
                          "what tile gives", &same));
  return weir_shape_set(ctx, 0, &x);
}

const weir_op_def weir_op_tile_grad = {
    .name = "tile_grad",
    .summary = "Gradient of tile: the repetitions added.",
    .example = "tile_grad(dy, shape=[2], repeats=[3])",
    .inputs = {{"dy", "T"}},
    .outputs = {{"dx", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"shape", WEIR_ATTR_INTS, NULL, "shape of the op's input"},
              {"repeats", WEIR_ATTR_INTS, NULL, "the op's repeats"}},
    .refuses = {"repeats that the op refuses",
                "a dy of another shape than tile gives", "integers", "bool"},
    .shape = shape,
    .cost = weir_cost_reduce};
