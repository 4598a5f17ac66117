/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"
#include "ops/shape/slicing.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape x, y, same;
  WEIR_TRY(weir_rule_shape_of_attr(ctx, "shape", &x));
  WEIR_TRY(weir_rule_pad(ctx, &x, &y));
  WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, 0), "dy", &y,
                          "the padded tensor", &same));
  return weir_shape_set(ctx, 0, &x);
}

/* Linear: the gradient is the op that this one is the gradient of. */
static weir_status grad(weir_grad_ctx *ctx) {
  static const char *const names[] = {"pads", "mode", NULL};
  weir_ref in[] = {weir_grad_dy(ctx, 0)};
  weir_grad_add(ctx, 0, weir_g_like(ctx, "pad", 1, in, names));
  return WEIR_OK;
}

const weir_op_def weir_op_pad_grad = {
    .name = "pad_grad",
    .summary =
        "Gradient of pad: each element of dy added to the one it was copied "
        "from.",
    .example = "pad_grad(dy, shape=[2], pads=[1, 1], mode=\"edge\")",
    .inputs = {{"dy", "T"}},
    .outputs = {{"dx", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"shape", WEIR_ATTR_INTS, NULL, "shape of the op's input"},
              {"pads", WEIR_ATTR_INTS, NULL, "the op's pads"},
              {"mode", WEIR_ATTR_STRING, "constant", "the op's mode",
               "constant|edge|reflect"}},
    .refuses = {"pads that the op refuses",
                "a dy of another shape than the padded one", "integers",
                "bool"},
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_reduce};
