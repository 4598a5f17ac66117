/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/optim/apply.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  static const char *const names[] = {"x", "scale", "bias", "mean", "var"};
  const weir_shape *x = weir_shape_in(ctx, 0);
  WEIR_TRY(weir_rule_finite(ctx, "epsilon", true));
  WEIR_TRY(weir_rule_share(ctx, "momentum"));
  WEIR_TRY(weir_rule_rank(ctx, 0, "x", 2, WEIR_MAX_RANK));
  for (uint32_t i = 1; x->rank > 0 && i < 5; i++) {
    weir_shape want = {.rank = 1}, same;
    want.dims[0] = x->dims[1];
    WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, i), names[i], &want,
                            "one number for each channel", &same));
  }
  return weir_rule_unary(ctx);
}

/* A vector of channels as [c, 1, ...], so that it broadcasts with x. */
static weir_ref column(weir_grad_ctx *ctx, weir_ref vector, int rank) {
  weir_dim dims[WEIR_MAX_RANK] = {weir_grad_shape(ctx, vector)->dims[0]};
  for (int i = 1; i < rank - 1; i++) dims[i] = weir_dim_of(1);
  return weir_g1a(ctx, "reshape", vector, "shape",
                  weir_attr_dims((uint32_t)(rank - 1), dims));
}

/* Sums over everything but the channels. */
static weir_ref by_channel(weir_grad_ctx *ctx, weir_ref g, int rank) {
  int axes[WEIR_MAX_RANK] = {0};
  for (int i = 2; i < rank; i++) axes[i - 1] = i;
  return weir_g_sum(ctx, g, (uint32_t)(rank - 1), axes, false);
}

/* With r = 1 / sqrt(var + epsilon): dscale = sum(dy (x - mean)) r,
 * dvar = -dscale scale r r / 2, dmean = -sum(dy) scale r. */
static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0), scale = weir_grad_in(ctx, 1);
  weir_ref mean = weir_grad_in(ctx, 3), var = weir_grad_in(ctx, 4);
  weir_ref dy = weir_grad_dy(ctx, 0);
  int rank = weir_grad_shape(ctx, x)->rank;
  weir_ref epsilon = weir_g_number(ctx, var, weir_grad_attr(ctx, "epsilon")->f);
  weir_ref r = weir_g1(ctx, "rsqrt", weir_g2(ctx, "add", var, epsilon));
  weir_ref slope = weir_g2(ctx, "mul", scale, r);
  if (weir_grad_wanted(ctx, 0))
    weir_grad_add(ctx, 0, weir_g2(ctx, "mul", dy, column(ctx, slope, rank)));
  weir_ref sum = by_channel(ctx, dy, rank);
  weir_ref off = weir_g2(ctx, "sub", x, column(ctx, mean, rank));
  weir_ref spread = by_channel(ctx, weir_g2(ctx, "mul", dy, off), rank);
  weir_ref dscale = weir_g2(ctx, "mul", spread, r);
  weir_ref bend = weir_g2(ctx, "mul", slope, r);
  weir_grad_add(ctx, 1, dscale);
  weir_grad_add(ctx, 2, sum);
  weir_grad_add(ctx, 3, weir_g1(ctx, "neg", weir_g2(ctx, "mul", sum, slope)));
  weir_grad_add(ctx, 4,
                weir_g_scale(ctx, weir_g2(ctx, "mul", dscale, bend), -0.5));
  return WEIR_OK;
}

const weir_op_def weir_op_batch_norm = {
    .name = "batch_norm",
    .summary =
        "(x - mean) / sqrt(var + epsilon) * scale + bias, for each channel.",
    .doc =
        "The form for inference: mean and var are given, not computed from x. "
        "The channels are dimension 1. In a training step it becomes "
        "batch_norm_train, and states given as mean and var follow: momentum "
        "times their value plus 1 - momentum times that of the batch.",
    .source = "Ioffe and Szegedy, arXiv:1502.03167",
    .example = "batch_norm(x, scale, bias, mean, var)",
    .inputs = {{"x", "T", "[n, c, ...]"},
               {"scale", "T", "[c]"},
               {"bias", "T", "[c]"},
               {"mean", "T", "[c]"},
               {"var", "T", "[c]"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"epsilon", WEIR_ATTR_FLOAT, "1e-5", "added to the variance"},
              {"momentum", WEIR_ATTR_FLOAT, "0.9",
               "share of the averages kept in a training step"}},
    .refuses = {"an x of rank below 2",
                "vectors of another length than the channels",
                "an epsilon that is not above 0", "a momentum outside [0, 1)",
                "integers"},
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_math};
