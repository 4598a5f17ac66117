/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/fold.h"
#include "ops/grads.h"
#include "ops/rules.h"

/* Whether dimension |i| goes when no axes are given. */
static weir_status is_one(weir_shape_ctx *ctx, const weir_shape *x, int i,
                          bool *out) {
  if (!weir_dim_known(x->dims[i]))
    return weir_shape_fail(
        ctx, WEIR_W2008, "x is %s, and whether %s is 1 is not known: give axis",
        weir_shape_text(ctx, x), weir_dim_text(ctx, x->dims[i]));
  *out = x->dims[i].value == 1;
  return WEIR_OK;
}

static weir_status shape(weir_shape_ctx *ctx) {
  const weir_shape *x = weir_shape_in(ctx, 0);
  weir_shape y = weir_shape_scalar();
  if (x->rank < 0) return weir_rule_unary(ctx);
  int axes[WEIR_MAX_RANK], count = 0;
  bool drop[WEIR_MAX_RANK] = {false};
  weir_dim one;
  WEIR_TRY(weir_rule_axes(ctx, "axis", x->rank, axes, &count));
  bool all = weir_shape_attr(ctx, "axis")->kind == WEIR_ATTR_NONE;
  for (int i = 0; i < count; i++) {
    if (all)
      WEIR_TRY(is_one(ctx, x, i, &drop[i]));
    else if (weir_dim_unify(x->dims[axes[i]], weir_dim_of(1), &one))
      drop[axes[i]] = true;
    else
      return weir_shape_fail(
          ctx, WEIR_W2010, "dimension %d of %s is %s, expected 1", axes[i],
          weir_shape_text(ctx, x), weir_dim_text(ctx, x->dims[axes[i]]));
  }
  for (int i = 0; i < x->rank; i++)
    if (!drop[i]) weir_shape_push(&y, x->dims[i]);
  return weir_rule_view(ctx, &y);
}

const weir_op_def weir_op_squeeze = {
    .name = "squeeze",
    .summary = "x without dimensions of size 1.",
    .example = "squeeze(x, axis=0)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES}},
    .attrs = {{"axis", WEIR_ATTR_INTS, "none",
               "dimensions to drop; none: all of size 1"}},
    .refuses = {"a dimension that is not 1", "an axis outside [-rank, rank)",
                "an axis given twice",
                "dimensions without numbers, unless axis is given"},
    .flags = WEIR_OP_VIEW,
    .shape = shape,
    .grad = weir_grad_reshape,
    .cost = weir_cost_none};
