/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/reduce/reduce.h"

/* Elements of y for each element of x: a number, or computed when it runs. */
static weir_ref share(weir_grad_ctx *ctx, weir_ref x, weir_ref y) {
  const weir_shape *from = weir_grad_shape(ctx, x);
  const weir_shape *to = weir_grad_shape(ctx, y);
  if (weir_shape_known(from) && weir_shape_known(to)) {
    double n = (double)weir_shape_elements(from);
    return weir_g_number(ctx, x,
                         n > 0 ? (double)weir_shape_elements(to) / n : 0);
  }
  weir_attr dtype = weir_attr_dtype(weir_grad_dtype(ctx, x));
  weir_ref all = weir_g1a(ctx, "cast", weir_g1(ctx, "size", x), "dtype", dtype);
  weir_ref part =
      weir_g1a(ctx, "cast", weir_g1(ctx, "size", y), "dtype", dtype);
  return weir_g2(ctx, "div", part, all);
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0), y = weir_grad_out(ctx, 0);
  weir_ref dy = weir_grad_dy(ctx, 0);
  weir_ref each = weir_g2(ctx, "mul", dy, share(ctx, x, y));
  each = weir_g_keepdims(ctx, each);
  weir_grad_add(ctx, 0, weir_g_expand_like(ctx, each, x));
  return WEIR_OK;
}

const weir_op_def weir_op_reduce_mean = {
    .name = "reduce_mean",
    .aliases = {"mean"},
    .summary = "Mean of x over some or all axes.",
    .doc = "The mean of no elements is NaN.",
    .example = "mean(x, axis=1)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"axis", WEIR_ATTR_INTS, "none",
               "axes to average over; none: all"},
              {"keepdims", WEIR_ATTR_BOOL, "false",
               "keep those axes with size 1"}},
    .refuses = {"an axis outside [-rank, rank)", "an axis given twice",
                "integers", "bool"},
    .shape = weir_rule_reduce,
    .grad = grad,
    .cost = weir_cost_reduce};
