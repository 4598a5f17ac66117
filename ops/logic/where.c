/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref cond = weir_grad_in(ctx, 0), dy = weir_grad_dy(ctx, 0);
  weir_ref zero = weir_g_number(ctx, dy, 0);
  if (weir_grad_wanted(ctx, 1))
    weir_g_add_broadcast(ctx, 1, weir_g3(ctx, "where", cond, dy, zero));
  if (weir_grad_wanted(ctx, 2))
    weir_g_add_broadcast(ctx, 2, weir_g3(ctx, "where", cond, zero, dy));
  return WEIR_OK;
}

const weir_op_def weir_op_where = {
    .name = "where",
    .summary = "a where cond is true, else b, element by element.",
    .example = "where(greater(x, 0), x, 0)",
    .inputs = {{"cond", "bool"}, {"a", "T"}, {"b", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES}},
    .refuses = {"shapes that do not broadcast", "a cond that is not bool",
                "a and b of two dtypes"},
    .flags = WEIR_OP_ELEMENTWISE,
    .shape = weir_rule_binary,
    .grad = grad,
    .cost = weir_cost_unary};
