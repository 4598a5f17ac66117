/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref a = weir_grad_in(ctx, 0), b = weir_grad_in(ctx, 1);
  weir_ref dy = weir_grad_dy(ctx, 0);
  weir_ref zero = weir_g_number(ctx, a, 0), one = weir_g_number(ctx, a, 1);
  if (weir_grad_wanted(ctx, 0)) { /* b a^(b-1), and 0 where b is 0 */
    weir_ref power = weir_g2(ctx, "pow", a, weir_g2(ctx, "sub", b, one));
    weir_ref flat = weir_g2(ctx, "equal", b, zero);
    weir_ref slope =
        weir_g3(ctx, "where", flat, zero, weir_g2(ctx, "mul", b, power));
    weir_g_add_broadcast(ctx, 0, weir_g2(ctx, "mul", dy, slope));
  }
  if (weir_grad_wanted(ctx, 1)) { /* y log(a), and 0 where a is not above 0 */
    weir_ref y = weir_grad_out(ctx, 0);
    weir_ref above = weir_g2(ctx, "greater", a, zero);
    weir_ref slope =
        weir_g3(ctx, "where", above,
                weir_g2(ctx, "mul", y, weir_g1(ctx, "log", a)), zero);
    weir_g_add_broadcast(ctx, 1, weir_g2(ctx, "mul", dy, slope));
  }
  return WEIR_OK;
}

const weir_op_def weir_op_pow = {
    .name = "pow",
    .summary = "a to the power of b, element by element.",
    .doc =
        "Integers wrap on overflow; a negative exponent of integers fails the "
        "run (W5008).",
    .example = "pow(a, b)",
    .inputs = {{"a", "T"}, {"b", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_NUMBERS}},
    .refuses = {"shapes that do not broadcast", "inputs of two dtypes", "bool",
                "a negative exponent of integers (when it runs)"},
    .flags = WEIR_OP_ELEMENTWISE | WEIR_OP_MAY_FAIL,
    .shape = weir_rule_binary,
    .grad = grad,
    .cost = weir_cost_math};
