/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  const weir_shape *x = weir_shape_in(ctx, 0);
  const weir_attr *perm = weir_shape_attr(ctx, "perm");
  if (x->rank < 0) return weir_rule_unary(ctx);
  int axes[WEIR_MAX_RANK], count = 0;
  weir_shape y = *x;
  if (perm->kind == WEIR_ATTR_INTS)
    WEIR_TRY(weir_rule_numbers(ctx, "perm", x->rank, x->rank));
  WEIR_TRY(weir_rule_axes(ctx, "perm", x->rank, axes, &count));
  bool reversed = perm->kind == WEIR_ATTR_NONE;
  for (int i = 0; i < count; i++)
    y.dims[i] = x->dims[reversed ? count - 1 - i : axes[i]];
  return weir_shape_set(ctx, 0, &y);
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref dy = weir_grad_dy(ctx, 0);
  const weir_attr *perm = weir_grad_attr(ctx, "perm");
  if (perm->kind == WEIR_ATTR_NONE) {
    weir_grad_add(ctx, 0, weir_g1(ctx, "transpose", dy));
    return WEIR_OK;
  }
  weir_dim back[WEIR_MAX_RANK];
  int64_t rank = perm->count;
  for (int64_t i = 0; i < rank; i++) {
    int64_t axis = perm->dims[i].value;
    back[axis < 0 ? axis + rank : axis] = weir_dim_of(i);
  }
  weir_grad_add(ctx, 0,
                weir_g1a(ctx, "transpose", dy, "perm",
                         weir_attr_dims((uint32_t)rank, back)));
  return WEIR_OK;
}

const weir_op_def weir_op_transpose = {
    .name = "transpose",
    .summary = "x with its dimensions in another order.",
    .example = "transpose(x, perm=[1, 0])",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES}},
    .attrs = {{"perm", WEIR_ATTR_INTS, "none",
               "dimension i of y is dimension perm[i] of x; none: reversed"}},
    .refuses = {"a perm that is no permutation",
                "a perm of another length than the rank"},
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_bytes};
