/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  static const char *const names[] = {"x", "scale", "mean", "var"};
  const weir_shape *x = weir_shape_in(ctx, 0);
  weir_shape channels = {.rank = 1}, same;
  WEIR_TRY(weir_rule_finite(ctx, "epsilon", true));
  WEIR_TRY(weir_rule_rank(ctx, 0, "x", 2, WEIR_MAX_RANK));
  if (x->rank > 0)
    channels.dims[0] = x->dims[1];
  else
    channels.dims[0] = weir_shape_new_dim(ctx);
  for (uint32_t i = 1; i < 4; i++) {
    WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, i), names[i], &channels,
                            "one number for each channel", &same));
    channels = same;
  }
  WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, 4), "dy", x, "x", &same));
  WEIR_TRY(weir_shape_set(ctx, 0, &same));
  WEIR_TRY(weir_shape_set(ctx, 1, &channels));
  return weir_shape_set(ctx, 2, &channels);
}

const weir_op_def weir_op_batch_norm_train_grad = {
    .name = "batch_norm_train_grad",
    .summary = "Gradients of batch_norm_train with respect to its inputs.",
    .doc =
        "With r = 1 / sqrt(var + epsilon), z = (x - mean) r and n elements for "
        "each channel: dbias = sum(dy), dscale = sum(dy z), dx = scale r (dy - "
        "dbias / n - z dscale / n).",
    .source = "Ioffe and Szegedy, arXiv:1502.03167",
    .example = "batch_norm_train_grad(x, scale, mean, var, dy)",
    .inputs = {{"x", "T", "[n, c, ...]"},
               {"scale", "T", "[c]"},
               {"mean", "T", "[c]"},
               {"var", "T", "[c]"},
               {"dy", "T"}},
    .outputs = {{"dx", "T"}, {"dscale", "T", "[c]"}, {"dbias", "T", "[c]"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"epsilon", WEIR_ATTR_FLOAT, "1e-5", "added to the variance"}},
    .refuses = {"an x of rank below 2",
                "vectors of another length than the channels",
                "a dy of another shape than x",
                "an epsilon that is not above 0", "integers"},
    .shape = shape,
    .cost = weir_cost_math};
