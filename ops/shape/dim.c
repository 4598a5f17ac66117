/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/fold.h"
#include "ops/grads.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  const weir_shape *x = weir_shape_in(ctx, 0);
  weir_shape y = weir_shape_scalar();
  weir_small small;
  int axis = 0;
  WEIR_TRY(weir_shape_set(ctx, 0, &y));
  if (x->rank < 0) return WEIR_OK;
  WEIR_TRY(weir_rule_axis(ctx, weir_rule_int(ctx, "axis"), x->rank, &axis));
  if (!weir_dim_known(x->dims[axis]) || !weir_small_init(&small, WEIR_I64, &y))
    return WEIR_OK;
  small.data[0] = x->dims[axis].value;
  return weir_shape_set_value(ctx, 0, &small.tensor);
}

const weir_op_def weir_op_dim = {
    .name = "dim",
    .summary = "Size of one dimension of x, an i64.",
    .example = "dim(x, 0)",
    .inputs = {{"x", NULL}},
    .outputs = {{"y", "i64"}},
    .attrs = {{"axis", WEIR_ATTR_INT, NULL, "which dimension"}},
    .refuses = {"an axis outside [-rank, rank)", "scalars"},
    .shape = shape,
    .grad = weir_grad_zero,
    .cost = weir_cost_none};
