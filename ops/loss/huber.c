/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  const weir_attr *reduction = weir_shape_attr(ctx, "reduction");
  weir_shape same, scalar = weir_shape_scalar();
  WEIR_TRY(weir_rule_finite(ctx, "delta", true));
  WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, 0), "a",
                          weir_shape_in(ctx, 1), "b", &same));
  return weir_shape_set(ctx, 0,
                        weir_sv_is(reduction->s, "none") ? &same : &scalar);
}

/* The slope is the difference, kept within delta. */
static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref a = weir_grad_in(ctx, 0), b = weir_grad_in(ctx, 1);
  weir_ref off = weir_g2(ctx, "sub", a, b);
  double delta = weir_grad_attr(ctx, "delta")->f;
  weir_named_attr limits[] = {{"min", weir_attr_float(-delta)},
                              {"max", weir_attr_float(delta)},
                              {NULL, {WEIR_ATTR_NONE, 0, {0}}}};
  weir_ref slope = weir_grad_node(ctx, "clip", 1, &off, limits);
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

const weir_op_def weir_op_huber = {
    .name = "huber",
    .summary = "Mean of squares of small differences, of sizes of large ones.",
    .doc =
        "With d = a - b: d d / 2 where |d| <= delta, else delta (|d| - delta / "
        "2). The mean of no elements is NaN.",
    .source = "Huber, Ann. Math. Statist. 35 (1964) 73-101",
    .example = "huber(predicted, wanted, delta=0.5)",
    .inputs = {{"a", "T"}, {"b", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"delta", WEIR_ATTR_FLOAT, "1.0",
               "where the square turns into a line"},
              {"reduction", WEIR_ATTR_STRING, "mean",
               "mean or sum over all elements, or none", "mean|sum|none"}},
    .refuses = {"shapes that differ", "a delta that is not above 0",
                "another reduction", "integers"},
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_reduce};
