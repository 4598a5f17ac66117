/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/fold.h"
#include "ops/grads.h"
#include "ops/rules.h"
#include "ops/shape/slicing.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_slice slices[WEIR_MAX_RANK];
  weir_shape y;
  WEIR_TRY(weir_rule_slice(ctx, weir_shape_in(ctx, 0), &y, slices));
  WEIR_TRY(weir_shape_set(ctx, 0, &y));
  const weir_tensor *x = weir_rule_ints(ctx, 0);
  weir_small small;
  if (x == NULL || y.rank != 1 || !weir_small_init(&small, x->dtype, &y))
    return WEIR_OK;
  for (int64_t i = 0; i < small.elements; i++)
    weir_tensor_set_i64(
        &small.tensor, i,
        weir_tensor_get_i64(x, slices[0].start + i * slices[0].step));
  return weir_shape_set_value(ctx, 0, &small.tensor);
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0), dy = weir_grad_dy(ctx, 0);
  weir_named_attr attrs[6] = {
      {"shape", weir_attr_shape(weir_grad_shape(ctx, x))}};
  const char *const names[] = {"start", "stop", "axis", "step"};
  for (int i = 0, n = 1; i < 4; i++)
    if (weir_grad_attr(ctx, names[i])->kind == WEIR_ATTR_INTS)
      attrs[n++] = (weir_named_attr){names[i], *weir_grad_attr(ctx, names[i])};
  weir_grad_add(ctx, 0, weir_grad_node(ctx, "slice_grad", 1, &dy, attrs));
  return WEIR_OK;
}

const weir_op_def weir_op_slice = {
    .name = "slice",
    .summary = "A part of x: from start up to stop along some axes.",
    .doc =
        "Negative positions count from the end; positions outside the tensor "
        "mean its ends.",
    .source = "Basic slicing: the NumPy manual",
    .example = "slice(x, start=[0, 2], stop=[4, -1])",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES}},
    .attrs = {{"start", WEIR_ATTR_INTS, NULL, "first element along each axis"},
              {"stop", WEIR_ATTR_INTS, NULL,
               "the element after the last; the largest i64: to the end"},
              {"axis", WEIR_ATTR_INTS, "none",
               "the axes; none: the first ones"},
              {"step", WEIR_ATTR_INTS, "none",
               "distance along each axis; none: 1; may be negative"}},
    .refuses = {"a step of 0", "lists of different lengths",
                "an axis outside [-rank, rank)", "an axis given twice"},
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_bytes};
