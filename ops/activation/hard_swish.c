/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/activation/hard.h"
#include "ops/cost.h"
#include "ops/rules.h"

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0), dy = weir_grad_dy(ctx, 0);
  weir_ref half = weir_g_number(ctx, x, 0.5);
  weir_ref slope = weir_g2(ctx, "add", weir_g_scale(ctx, x, 1.0 / 3), half);
  weir_ref bent = weir_g2(ctx, "mul", dy, slope);
  weir_grad_add(ctx, 0, weir_hard_grad(ctx, bent, dy));
  return WEIR_OK;
}

const weir_op_def weir_op_hard_swish = {
    .name = "hard_swish",
    .summary = "x times hard_sigmoid(x).",
    .doc =
        "0 up to -3, x from 3 on, x (x + 3) / 6 between. hard_swish(-infinity) "
        "is -0, its limit. The gradient at the corners is that of the left "
        "side.",
    .source = "Howard et al., arXiv:1905.02244",
    .example = "hard_swish(x)",
    WEIR_FLOAT_UNARY_FIELDS,
    .grad = grad,
    .cost = weir_cost_unary};
