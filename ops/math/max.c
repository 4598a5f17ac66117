/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/math/extreme.h"

static bool fold(int64_t a, int64_t b, int64_t *out) {
  *out = a > b ? a : b;
  return true;
}

static weir_status shape(weir_shape_ctx *ctx) {
  return weir_rule_binary_fold(ctx, fold);
}

static weir_status grad(weir_grad_ctx *ctx) {
  return weir_grad_of_either(ctx, "greater_equal");
}

const weir_op_def weir_op_max = {
    .name = "max",
    .aliases = {"maximum"},
    .summary = "Larger of a and b, element by element.",
    .doc =
        "NaN if either is NaN. Where both are equal the gradient goes to a. "
        "With one input, max(x) is reduce_max.",
    .example = "max(a, b)",
    .shape = shape,
    .grad = grad,
    WEIR_EITHER_FIELDS};
