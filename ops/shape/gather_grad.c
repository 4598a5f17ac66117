/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"
#include "ops/shape/slicing.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape x, y, same;
  WEIR_TRY(weir_rule_shape_of_attr(ctx, "shape", &x));
  WEIR_TRY(weir_rule_gather(ctx, &x, weir_shape_in(ctx, 1), &y));
  WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, 0), "dy", &y,
                          "gather's output", &same));
  return weir_shape_set(ctx, 0, &x);
}

/* Linear: the gradient is the op that this one is the gradient of. */
static weir_status grad(weir_grad_ctx *ctx) {
  static const char *const names[] = {"axis", NULL};
  weir_ref in[] = {weir_grad_dy(ctx, 0), weir_grad_in(ctx, 1)};
  weir_grad_add(ctx, 0, weir_g_like(ctx, "gather", 2, in, names));
  return WEIR_OK;
}

const weir_op_def weir_op_gather_grad = {
    .name = "gather_grad",
    .summary = "Gradient of gather: slices of dy added where they came from.",
    .doc = "Slices with the same index are added in the order of the indices.",
    .example = "gather_grad(dy, indices, shape=[10, 4])",
    .inputs = {{"dy", "T"}, {"indices", "I"}},
    .outputs = {{"dx", "T"}},
    .types = {{"T", WEIR_FLOATS}, {"I", WEIR_I32 | WEIR_I64}},
    .attrs = {{"shape", WEIR_ATTR_INTS, NULL, "shape of the op's input"},
              {"axis", WEIR_ATTR_INT, "0", "the op's axis"}},
    .refuses = {"an index outside [-n, n) (when it runs)",
                "an axis outside [-rank, rank)",
                "a dy of another shape than gather gives", "float indices"},
    .flags = WEIR_OP_MAY_FAIL,
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_reduce};
