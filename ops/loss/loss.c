/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/loss/loss.h"

weir_status weir_rule_loss(weir_shape_ctx *ctx) {
  const weir_attr *reduction = weir_shape_attr(ctx, "reduction");
  weir_shape same, scalar = weir_shape_scalar();
  WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, 0), "a",
                          weir_shape_in(ctx, 1), "b", &same));
  return weir_shape_set(ctx, 0,
                        weir_sv_is(reduction->s, "none") ? &same : &scalar);
}

weir_status weir_grad_loss(weir_grad_ctx *ctx, weir_ref slope) {
  weir_ref a = weir_grad_in(ctx, 0);
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
