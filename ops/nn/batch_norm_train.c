/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  static const char *const names[] = {"x", "scale", "bias"};
  const weir_shape *x = weir_shape_in(ctx, 0);
  weir_shape channels = {.rank = 1};
  WEIR_TRY(weir_rule_finite(ctx, "epsilon", true));
  WEIR_TRY(weir_rule_rank(ctx, 0, "x", 2, WEIR_MAX_RANK));
  if (x->rank > 0)
    channels.dims[0] = x->dims[1];
  else
    channels.dims[0] = weir_shape_new_dim(ctx);
  for (uint32_t i = 1; i < 3; i++) {
    weir_shape same;
    WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, i), names[i], &channels,
                            "one number for each channel", &same));
    channels = same;
  }
  WEIR_TRY(weir_rule_unary(ctx));
  WEIR_TRY(weir_shape_set(ctx, 1, &channels));
  return weir_shape_set(ctx, 2, &channels);
}

/* A vector of channels as [c, 1, ...], so that it broadcasts with x. */
static weir_ref column(weir_grad_ctx *ctx, weir_ref vector, int rank) {
  weir_dim dims[WEIR_MAX_RANK] = {weir_grad_shape(ctx, vector)->dims[0]};
  for (int i = 1; i < rank - 1; i++) dims[i] = weir_dim_of(1);
  return weir_g1a(ctx, "reshape", vector, "shape",
                  weir_attr_dims((uint32_t)(rank - 1), dims));
}

/* x's elements for each channel, as a number. */
static weir_ref per_channel(weir_grad_ctx *ctx, weir_ref x, weir_ref scale) {
  weir_attr dtype = weir_attr_dtype(weir_grad_dtype(ctx, x));
  weir_ref all = weir_g1a(ctx, "cast", weir_g1(ctx, "size", x), "dtype", dtype);
  weir_ref channels =
      weir_g1a(ctx, "cast", weir_g1(ctx, "size", scale), "dtype", dtype);
  return weir_g2(ctx, "div", all, channels);
}

/* Through y by one node; through mean and var, which seldom have a gradient, by
 * dx = dmean / n + dvar 2 (x - mean) / n. */
static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0), scale = weir_grad_in(ctx, 1);
  weir_ref mean = weir_grad_out(ctx, 1), var = weir_grad_out(ctx, 2);
  int rank = weir_grad_shape(ctx, x)->rank;
  if (weir_grad_dy(ctx, 0) != WEIR_NO_VALUE) {
    weir_named_attr attrs[] = {
        {"epsilon", weir_attr_float(weir_grad_attr(ctx, "epsilon")->f)},
        {NULL, {.kind = WEIR_ATTR_NONE}}};
    weir_ref in[] = {x, scale, mean, var, weir_grad_dy(ctx, 0)};
    weir_ref dx = weir_grad_node(ctx, "batch_norm_train_grad", 5, in, attrs);
    for (uint32_t i = 0; i < 3; i++)
      weir_grad_add(ctx, i, weir_grad_next(dx, i));
  }
  for (uint32_t i = 1; i < 3; i++) {
    weir_ref d = weir_grad_dy(ctx, i);
    if (d == WEIR_NO_VALUE || !weir_grad_wanted(ctx, 0)) continue;
    weir_ref dx =
        column(ctx, weir_g2(ctx, "div", d, per_channel(ctx, x, scale)), rank);
    weir_ref off = i == 1 ? weir_g_number(ctx, x, 1)
                          : weir_g2(ctx, "sub", x, column(ctx, mean, rank));
    if (i == 2) dx = weir_g_scale(ctx, dx, 2);
    weir_grad_add(ctx, 0,
                  weir_g_expand_like(ctx, weir_g2(ctx, "mul", off, dx), x));
  }
  return WEIR_OK;
}

const weir_op_def weir_op_batch_norm_train = {
    .name = "batch_norm_train",
    .summary = "batch_norm by the mean and variance of x itself.",
    .doc =
        "The form for training, which batch_norm becomes in a training step: "
        "mean and var are those of each channel of x (the variance divides by "
        "the number of elements) and are given too, for running averages. They "
        "are 0 when x has no elements.",
    .source = "Ioffe and Szegedy, arXiv:1502.03167",
    .example = "batch_norm_train(x, scale, bias)",
    .inputs = {{"x", "T", "[n, c, ...]"},
               {"scale", "T", "[c]"},
               {"bias", "T", "[c]"}},
    .outputs = {{"y", "T"}, {"mean", "T", "[c]"}, {"var", "T", "[c]"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"epsilon", WEIR_ATTR_FLOAT, "1e-5", "added to the variance"}},
    .refuses = {"an x of rank below 2",
                "vectors of another length than the channels",
                "an epsilon that is not above 0", "integers"},
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_math};
