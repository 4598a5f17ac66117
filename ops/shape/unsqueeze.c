/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/fold.h"
#include "ops/grads.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  const weir_shape *x = weir_shape_in(ctx, 0);
  uint32_t added = weir_shape_attr(ctx, "axis")->count;
  if (x->rank < 0) return weir_rule_unary(ctx);
  if (added > (uint32_t)(WEIR_MAX_RANK - x->rank))
    return weir_shape_fail(ctx, WEIR_W2003,
                           "%u more dimensions for %s, at most %d", added,
                           weir_shape_text(ctx, x), WEIR_MAX_RANK);
  int axes[WEIR_MAX_RANK], count = 0, rank = x->rank + (int)added;
  WEIR_TRY(weir_rule_axes(ctx, "axis", rank, axes, &count));
  unsigned ones = 0;
  for (int i = 0; i < count; i++) ones |= 1u << axes[i];
  weir_shape y = weir_shape_scalar();
  for (int i = 0, from = 0; i < rank; i++)
    weir_shape_push(&y, ones & 1u << i ? weir_dim_of(1) : x->dims[from++]);
  return weir_rule_view(ctx, &y);
}

const weir_op_def weir_op_unsqueeze = {
    .name = "unsqueeze",
    .summary = "x with dimensions of size 1 put in.",
    .example = "unsqueeze(x, axis=0)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES}},
    .attrs = {{"axis", WEIR_ATTR_INTS, NULL, "where they are in the result"}},
    .refuses = {"an axis outside the result", "an axis given twice",
                "a result of more than 8 dimensions"},
    .flags = WEIR_OP_VIEW,
    .shape = shape,
    .grad = weir_grad_reshape,
    .cost = weir_cost_none};
