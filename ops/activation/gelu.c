/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

/* At infinity the slope is 0 or 1, and it is that in f64 from 40 on: x is held
 * there, since 0 times infinity is no number. */
enum { HOLD = 40 };

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

/* s + x s (1 - s) v', s = sigmoid(v), v = 2 c (x + 0.044715 x^3): the same as
 * by tanh(v / 2), and the digits of the tail stay. x is held, since x^3 may be
 * infinite. */
static weir_ref slope_tanh(weir_grad_ctx *ctx, weir_ref x) {
  const double c = 1.5957691216057308; /* 2 sqrt(2 / pi) */
  weir_ref one = weir_g_number(ctx, x, 1);
  weir_ref xx = weir_g1(ctx, "square", x);
  weir_ref inner = weir_g2(ctx, "add", one, weir_g_scale(ctx, xx, 0.044715));
  weir_ref v = weir_g_scale(ctx, weir_g2(ctx, "mul", x, inner), c);
  weir_ref dv = weir_g_scale(
      ctx, weir_g2(ctx, "add", one, weir_g_scale(ctx, xx, 3 * 0.044715)), c);
  weir_ref s = weir_g1(ctx, "sigmoid", v);
  weir_ref bend = weir_g2(ctx, "mul", s, weir_g2(ctx, "sub", one, s));
  weir_ref right = weir_g2(ctx, "mul", x, weir_g2(ctx, "mul", bend, dv));
  return weir_g2(ctx, "add", s, right);
}

static weir_ref held(weir_grad_ctx *ctx, weir_ref x) {
  weir_named_attr attrs[] = {{"min", {.kind = WEIR_ATTR_INT, .i = -HOLD}},
                             {"max", {.kind = WEIR_ATTR_INT, .i = HOLD}},
                             {NULL, {WEIR_ATTR_NONE, 0, {0}}}};
  return weir_grad_node(ctx, "clip", 1, &x, attrs);
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0), dy = weir_grad_dy(ctx, 0);

  bool by_tanh = weir_sv_is(weir_grad_attr(ctx, "approximate")->s, "tanh");
  x = held(ctx, x);
  weir_ref slope = by_tanh ? slope_tanh(ctx, x) : slope_erf(ctx, x);
  weir_grad_add(ctx, 0, weir_g2(ctx, "mul", dy, slope));
  return WEIR_OK;
}

const weir_op_def weir_op_gelu = {
    .name = "gelu",
    .summary = "x times the normal distribution function of x.",
    .doc = "gelu(-infinity) is -0, its limit. Small results keep their digits.",
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
