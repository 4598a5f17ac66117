/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/nn/norm.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape same;
  WEIR_TRY(weir_rule_tail(ctx, 1, "scale"));
  WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, 2), "dy",
                          weir_shape_in(ctx, 0), "x", &same));
  return weir_rule_unary(ctx);
}

const weir_op_def weir_op_layer_norm_grad = {
    .name = "layer_norm_grad",
    .summary = "Gradient of layer_norm with respect to x.",
    .doc =
        "With g = dy * scale and n the normalised x: (g - mean(g) - n mean(g "
        "n)) / sqrt(variance + epsilon).",
    .example = "layer_norm_grad(x, scale, dy)",
    .inputs = {{"x", "T"}, {"scale", "T", "[dims from axis on]"}, {"dy", "T"}},
    .outputs = {{"dx", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"axis", WEIR_ATTR_INT, "-1",
               "first of the dimensions that are normalised"},
              {"epsilon", WEIR_ATTR_FLOAT, "1e-5", "added to the variance"}},
    .refuses = {"an axis outside [-rank, rank)", "scalars",
                "an epsilon that is not above 0", "a scale of another shape",
                "a dy of another shape than x", "integers"},
    .shape = shape,
    .cost = weir_cost_math};
