/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"
#include "ops/shape/slicing.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_slice slices[WEIR_MAX_RANK];
  weir_shape x, y, same;
  WEIR_TRY(weir_rule_shape_of_attr(ctx, "shape", &x));
  WEIR_TRY(weir_rule_slice(ctx, &x, &y, slices));
  WEIR_TRY(
      weir_rule_same(ctx, weir_shape_in(ctx, 0), "dy", &y, "the slice", &same));
  return weir_shape_set(ctx, 0, &x);
}

/* Linear: the gradient is the op that this one is the gradient of. */
static weir_status grad(weir_grad_ctx *ctx) {
  static const char *const names[] = {"start", "stop", "axis", "step", NULL};
  weir_ref in[] = {weir_grad_dy(ctx, 0)};
  weir_grad_add(ctx, 0, weir_g_like(ctx, "slice", 1, in, names));
  return WEIR_OK;
}

const weir_op_def weir_op_slice_grad = {
    .name = "slice_grad",
    .summary = "Gradient of slice: dy where the slice was, else 0.",
    .example = "slice_grad(dy, shape=[4], start=[1], stop=[3])",
    .inputs = {{"dy", "T"}},
    .outputs = {{"dx", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"shape", WEIR_ATTR_INTS, NULL, "shape of the op's input"},
              {"start", WEIR_ATTR_INTS, NULL, "first element along each axis"},
              {"stop", WEIR_ATTR_INTS, NULL,
               "the element after the last; the largest i64: to the end"},
              {"axis", WEIR_ATTR_INTS, "none",
               "the axes; none: the first ones"},
              {"step", WEIR_ATTR_INTS, "none",
               "distance along each axis; none: 1; may be negative"}},
    .refuses = {"a step of 0", "lists of different lengths",
                "an axis outside [-rank, rank)", "an axis given twice",
                "a dy of another shape than the slice", "integers", "bool"},
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_bytes};
