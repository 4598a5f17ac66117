/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0), dy = weir_grad_dy(ctx, 0);

  weir_ref twice = weir_g_scale(ctx, x, 2);
  weir_grad_add(ctx, 0, weir_g2(ctx, "mul", dy, twice));
  return WEIR_OK;
}

const weir_op_def weir_op_square = {.name = "square",
                                    .summary = "x * x, element by element.",
                                    .doc = "Integers wrap on overflow.",
                                    .example = "square(x)",
                                    .inputs = {{"x", "T"}},
                                    .outputs = {{"y", "T"}},
                                    .types = {{"T", WEIR_NUMBERS}},
                                    .refuses = {"bool"},
                                    .flags = WEIR_OP_ELEMENTWISE,
                                    .shape = weir_rule_unary,
                                    .grad = grad,
                                    .cost = weir_cost_unary};
