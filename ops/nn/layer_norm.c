/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/nn/norm.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  WEIR_TRY(weir_rule_tail(ctx, 1, "scale"));
  WEIR_TRY(weir_rule_tail(ctx, 2, "bias"));
  return weir_rule_unary(ctx);
}

static weir_named_attr axis_of(weir_grad_ctx *ctx) {
  return (weir_named_attr){"axis", *weir_grad_attr(ctx, "axis")};
}

static weir_named_attr epsilon_of(weir_grad_ctx *ctx) {
  return (weir_named_attr){"epsilon", *weir_grad_attr(ctx, "epsilon")};
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0), scale = weir_grad_in(ctx, 1);
  weir_ref dy = weir_grad_dy(ctx, 0);
  weir_named_attr attrs[] = {
      axis_of(ctx), epsilon_of(ctx), {NULL, {WEIR_ATTR_NONE, 0, {0}}}};
  weir_ref in[] = {x, scale, dy};
  if (weir_grad_wanted(ctx, 0))
    weir_grad_add(ctx, 0, weir_grad_node(ctx, "layer_norm_grad", 3, in, attrs));
  if (weir_grad_wanted(ctx, 1)) { /* dy times the normalised x */
    weir_ref plain[] = {x, weir_g1(ctx, "ones_like", scale),
                        weir_g1(ctx, "zeros_like", scale)};
    weir_ref normal = weir_grad_node(ctx, "layer_norm", 3, plain, attrs);
    weir_g_add_broadcast(ctx, 1, weir_g2(ctx, "mul", dy, normal));
  }
  if (weir_grad_wanted(ctx, 2)) weir_g_add_broadcast(ctx, 2, dy);
  return WEIR_OK;
}

const weir_op_def weir_op_layer_norm = {
    .name = "layer_norm",
    .summary =
        "x made mean 0 and variance 1 over its last dimensions, times scale, "
        "plus bias.",
    .source = "Ba, Kiros and Hinton, arXiv:1607.06450",
    .example = "layer_norm(x, scale, bias)",
    .inputs = {{"x", "T"},
               {"scale", "T", "[dims from axis on]"},
               {"bias", "T", "[dims from axis on]"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"axis", WEIR_ATTR_INT, "-1",
               "first of the dimensions that are normalised"},
              {"epsilon", WEIR_ATTR_FLOAT, "1e-5", "added to the variance"}},
    .refuses = {"an axis outside [-rank, rank)", "scalars",
                "an epsilon that is not above 0",
                "scale or bias of another shape", "integers"},
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_math};
