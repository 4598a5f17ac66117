/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/shape_ctx.h"

static uint32_t output_count(const weir_attr *attrs, uint32_t in_count) {
  (void)attrs;
  return in_count > 1 ? in_count - 1 : 1;
}

static weir_status shape(weir_shape_ctx *ctx) {
  for (uint32_t i = 0; i < weir_shape_in_count(ctx); i++)
    if (!weir_dtype_is_float(weir_shape_in_dtype(ctx, i)))
      return weir_shape_fail(ctx, WEIR_W2005,
                             "%s is %s, must be floating point",
                             i == 0 ? "loss" : "variable of the gradient",
                             weir_dtype_name(weir_shape_in_dtype(ctx, i)));
  for (uint32_t i = 1; i < weir_shape_in_count(ctx); i++) {
    weir_shape_set_dtype(ctx, i - 1, weir_shape_in_dtype(ctx, i));
    WEIR_TRY(weir_shape_set(ctx, i - 1, weir_shape_in(ctx, i)));
  }
  return WEIR_OK;
}

const weir_op_def weir_op_gradients = {
    .name = "gradients",
    .summary = "Gradients of a value with respect to others.",
    .doc =
        "d(sum of loss) / d(x), one result for each x, of its shape and dtype; "
        "zeros where the loss does not depend on it. What stands between loss "
        "and an x must be differentiable; the results can be differentiated "
        "again. The node is replaced by those that compute it when a graph is "
        "loaded.",
    .source = "Griewank and Walther, Evaluating Derivatives (SIAM 2008), ch. 3",
    .example = "dw, db: gradients(loss, [w, b])",
    .inputs = {{"loss", NULL},
               {"xs", NULL, NULL, .variadic = true, .listed = true}},
    .outputs = {{"dxs", NULL}},
    .refuses = {"integers", "a path through an op without a gradient"},
    .instr = WEIR_INSTR_NONE,
    .output_count = output_count,
    .shape = shape,
    .cost = weir_cost_none};
