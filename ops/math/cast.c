/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/fold.h"
#include "ops/grads.h"
#include "ops/rules.h"

/* Folds between integer dtypes when every value fits. */
static weir_status shape(weir_shape_ctx *ctx) {
  const weir_tensor *x = weir_rule_ints(ctx, 0);
  weir_dtype dtype = weir_shape_attr(ctx, "dtype")->dtype;
  weir_small small;
  WEIR_TRY(weir_rule_unary(ctx));
  if (x == NULL || !weir_small_init(&small, dtype, &x->shape)) return WEIR_OK;
  for (int64_t i = 0; i < small.elements; i++)
    weir_tensor_set_i64(&small.tensor, i, weir_tensor_get_i64(x, i));
  return weir_shape_set_value(ctx, 0, &small.tensor);
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0), dy = weir_grad_dy(ctx, 0);
  if (!weir_dtype_is_float(weir_grad_dtype(ctx, x))) return WEIR_OK;
  if (!weir_dtype_is_float(weir_grad_attr(ctx, "dtype")->dtype)) return WEIR_OK;
  weir_grad_add(ctx, 0,
                weir_g1a(ctx, "cast", dy, "dtype",
                         weir_attr_dtype(weir_grad_dtype(ctx, x))));
  return WEIR_OK;
}

const weir_op_def weir_op_cast = {
    .name = "cast",
    .summary = "x with every element converted to another dtype.",
    .doc =
        "From a float to an integer: towards zero, values outside the range "
        "become its nearest end and NaN becomes 0. From an integer to a "
        "smaller one: the nearest end as well. To bool: x != 0.",
    .example = "cast(x, dtype=f64)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "U"}},
    .types = {{"T", WEIR_ALL_TYPES}, {"U", WEIR_ALL_TYPES, "dtype"}},
    .attrs = {{"dtype", WEIR_ATTR_DTYPE, NULL, "dtype of the result"}},
    .flags = WEIR_OP_ELEMENTWISE,
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_unary};
