/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  const weir_attr *reduction = weir_shape_attr(ctx, "reduction");
  weir_shape same, scalar = weir_shape_scalar();
  WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, 0), "a",
                          weir_shape_in(ctx, 1), "b", &same));
  return weir_shape_set(ctx, 0,
                        weir_sv_is(reduction->s, "none") ? &same : &scalar);
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref a = weir_grad_in(ctx, 0), b = weir_grad_in(ctx, 1);
  weir_ref slope = weir_g_scale(ctx, weir_g2(ctx, "sub", a, b), 2);
  if (weir_sv_is(weir_grad_attr(ctx, "reduction")->s, "mean")) {
    weir_attr dtype = weir_attr_dtype(weir_grad_dtype(ctx, a));
    weir_ref count =
        weir_g1a(ctx, "cast", weir_g1(ctx, "size", a), "dtype", dtype);
    slope = weir_g2(ctx, "div", slope, count);
  }
  weir_ref g = weir_g2(ctx, "mul", weir_grad_dy(ctx, 0), slope);
  weir_grad_add(ctx, 0, g);
  if (weir_grad_wanted(ctx, 1)) weir_grad_add(ctx, 1, weir_g1(ctx, "neg", g));
  return WEIR_OK;
}

const weir_op_def weir_op_mse = {
    .name = "mse",
    .summary = "Mean of the squared differences of a and b.",
    .doc = "The mean of no elements is NaN.",
    .example = "mse(predicted, wanted)",
    .inputs = {{"a", "T"}, {"b", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"reduction", WEIR_ATTR_STRING, "mean",
               "mean or sum over all elements, or none", "mean|sum|none"}},
    .refuses = {"shapes that differ", "another reduction", "integers"},
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_reduce};
