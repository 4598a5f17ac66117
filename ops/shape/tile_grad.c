/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"
#include "ops/shape/slicing.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape x, y, same;
  WEIR_TRY(weir_rule_shape_of_attr(ctx, "shape", &x));
  WEIR_TRY(weir_rule_tile(ctx, &x, &y));
  WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, 0), "dy", &y, "tile's output",
                          &same));
  return weir_shape_set(ctx, 0, &x);
}

/* Linear: the gradient is the op that this one is the gradient of. */
static weir_status grad(weir_grad_ctx *ctx) {
  static const char *const names[] = {"repeats", NULL};
  weir_ref in[] = {weir_grad_dy(ctx, 0)};
  weir_grad_add(ctx, 0, weir_g_like(ctx, "tile", 1, in, names));
  return WEIR_OK;
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
    .grad = grad,
    .cost = weir_cost_reduce};
