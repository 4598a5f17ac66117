/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/fold.h"
#include "ops/grads.h"
#include "ops/rules.h"

/* Known scalars become a list. */
static weir_status stack_values(weir_shape_ctx *ctx, const weir_shape *y) {
  weir_small small;
  if (y->rank != 1 || !weir_small_init(&small, weir_shape_in_dtype(ctx, 0), y))
    return WEIR_OK;
  for (uint32_t i = 0; i < weir_shape_in_count(ctx); i++) {
    const weir_tensor *x = weir_rule_ints(ctx, i);
    if (x == NULL) return WEIR_OK;
    weir_tensor_set_i64(&small.tensor, i, weir_tensor_get_i64(x, 0));
  }
  return weir_shape_set_value(ctx, 0, &small.tensor);
}

static weir_status shape(weir_shape_ctx *ctx) {
  uint32_t count = weir_shape_in_count(ctx);
  weir_shape x = *weir_shape_in(ctx, 0), y = weir_shape_scalar(), same;
  int axis = 0;
  for (uint32_t i = 1; i < count; i++) {
    WEIR_TRY(weir_rule_same(ctx, &x, "the first input", weir_shape_in(ctx, i),
                            "another", &same));
    x = same;
  }
  if (x.rank < 0) return weir_shape_set(ctx, 0, &x);
  if (x.rank >= WEIR_MAX_RANK)
    return weir_shape_fail(ctx, WEIR_W2003,
                           "the inputs are %s, at most rank %d",
                           weir_shape_text(ctx, &x), WEIR_MAX_RANK - 1);
  WEIR_TRY(weir_rule_axis(ctx, weir_rule_int(ctx, "axis"), x.rank + 1, &axis));
  for (int i = 0; i <= x.rank; i++)
    weir_shape_push(
        &y, i == axis ? weir_dim_of(count) : x.dims[i < axis ? i : i - 1]);
  WEIR_TRY(weir_shape_set(ctx, 0, &y));
  return stack_values(ctx, &y);
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_dim axis = weir_dim_of(weir_grad_attr(ctx, "axis")->i);
  weir_ref dy = weir_grad_dy(ctx, 0);
  for (uint32_t i = 0; i < weir_grad_in_count(ctx); i++) {
    if (!weir_grad_wanted(ctx, i)) continue;
    weir_dim from = weir_dim_of(i), to = weir_dim_of((int64_t)i + 1);
    weir_named_attr attrs[] = {{"start", weir_attr_dims(1, &from)},
                               {"stop", weir_attr_dims(1, &to)},
                               {"axis", weir_attr_dims(1, &axis)},
                               {NULL, {WEIR_ATTR_NONE, 0, {0}}}};
    weir_ref part = weir_grad_node(ctx, "slice", 1, &dy, attrs);
    weir_grad_add(
        ctx, i,
        weir_g1a(ctx, "squeeze", part, "axis", weir_attr_dims(1, &axis)));
  }
  return WEIR_OK;
}

const weir_op_def weir_op_stack = {
    .name = "stack",
    .summary = "Tensors of one shape along a new axis.",
    .example = "stack(a, b, axis=0)",
    .inputs = {{"xs", "T", NULL, .variadic = true}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES}},
    .attrs = {{"axis", WEIR_ATTR_INT, "0",
               "where the new axis is in the result"}},
    .refuses = {"shapes that differ", "an axis outside the result",
                "inputs of rank 8", "inputs of two dtypes"},
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_bytes};
