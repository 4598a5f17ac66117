/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/fold.h"
#include "ops/grads.h"

static bool fold(int64_t a, int64_t b, int64_t *out) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return false;
  *out = a / b;
  return true;
}

static weir_status shape(weir_shape_ctx *ctx) {
  return weir_rule_binary_fold(ctx, fold);
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref b = weir_grad_in(ctx, 1);
  weir_ref dy = weir_grad_dy(ctx, 0);
  if (weir_grad_wanted(ctx, 0))
    weir_g_add_broadcast(ctx, 0, weir_g2(ctx, "div", dy, b));
  if (!weir_grad_wanted(ctx, 1)) return WEIR_OK;
  weir_ref slope = weir_g2(ctx, "div", weir_grad_out(ctx, 0), b);
  weir_g_add_broadcast(ctx, 1,
                       weir_g1(ctx, "neg", weir_g2(ctx, "mul", dy, slope)));
  return WEIR_OK;
}

const weir_op_def weir_op_div = {
    .name = "div",
    .aliases = {"divide"},
    .summary = "Quotient of a and b, element by element.",
    .doc =
        "Integers are divided toward zero; an integer divided by 0 fails the "
        "run (W5003).",
    .example = "div(a, b)",
    .inputs = {{"a", "T"}, {"b", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_NUMBERS}},
    .refuses = {"shapes that do not broadcast", "inputs of two dtypes", "bool",
                "an integer divided by 0 (when it runs)"},
    .flags = WEIR_OP_ELEMENTWISE | WEIR_OP_MAY_FAIL,
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_unary};
