/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

/* Phi(x) + x phi(x), Phi the normal distribution and phi its density. */
static weir_ref slope_erf(weir_grad_ctx *ctx, weir_ref x) {
  weir_ref e = weir_g1(ctx, "erf", weir_g_scale(ctx, x, 0.7071067811865476));
  weir_ref phi =
      weir_g1(ctx, "exp", weir_g_scale(ctx, weir_g1(ctx, "square", x), -0.5));
  weir_ref one = weir_g_number(ctx, x, 1);
  weir_ref left = weir_g_scale(ctx, weir_g2(ctx, "add", one, e), 0.5);
  weir_ref right = weir_g_scale(ctx, weir_g2(ctx, "mul", x, phi),
                                0.3989422804014327); /* 1 / sqrt(2 pi) */
  return weir_g2(ctx, "add", left, right);
}

/* (1 + t) / 2 + x (1 - t^2) u' / 2, t = tanh(u), u = c (x + 0.044715 x^3). */
static weir_ref slope_tanh(weir_grad_ctx *ctx, weir_ref x) {
  const double c = 0.7978845608028654; /* sqrt(2 / pi) */
  weir_ref one = weir_g_number(ctx, x, 1), xx = weir_g1(ctx, "square", x);
  weir_ref inner = weir_g2(ctx, "add", one, weir_g_scale(ctx, xx, 0.044715));
  weir_ref u = weir_g_scale(ctx, weir_g2(ctx, "mul", x, inner), c);
  weir_ref du = weir_g_scale(
      ctx, weir_g2(ctx, "add", one, weir_g_scale(ctx, xx, 3 * 0.044715)), c);
  weir_ref t = weir_g1(ctx, "tanh", u);
  weir_ref left = weir_g2(ctx, "add", one, t);
  weir_ref bend = weir_g2(ctx, "sub", one, weir_g1(ctx, "square", t));
  weir_ref right = weir_g2(ctx, "mul", x, weir_g2(ctx, "mul", bend, du));
  return weir_g_scale(ctx, weir_g2(ctx, "add", left, right), 0.5);
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0), dy = weir_grad_dy(ctx, 0);

  bool by_tanh = weir_sv_is(weir_grad_attr(ctx, "approximate")->s, "tanh");
  weir_ref slope = by_tanh ? slope_tanh(ctx, x) : slope_erf(ctx, x);
  weir_grad_add(ctx, 0, weir_g2(ctx, "mul", dy, slope));
  return WEIR_OK;
}

const weir_op_def weir_op_gelu = {
    .name = "gelu",
    .summary = "x times the normal distribution function of x.",
    .source = "Hendrycks and Gimpel, arXiv:1606.08415",
    .example = "gelu(x)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"approximate", WEIR_ATTR_STRING, "none",
               "tanh: x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2",
               "none|tanh"}},
    .refuses = {"an approximation other than none and tanh", "integers",
                "bool"},
    .flags = WEIR_OP_ELEMENTWISE,
    .shape = weir_rule_unary,
    .grad = grad,
    .cost = weir_cost_math};
