/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  const weir_attr *low = weir_shape_attr(ctx, "min");
  const weir_attr *high = weir_shape_attr(ctx, "max");
  double least = weir_attr_number(low), most = weir_attr_number(high);
  bool both = low->kind != WEIR_ATTR_NONE && high->kind != WEIR_ATTR_NONE;
  bool ints = low->kind == WEIR_ATTR_INT && high->kind == WEIR_ATTR_INT;
  if ((low->kind != WEIR_ATTR_NONE && isnan(least)) ||
      (high->kind != WEIR_ATTR_NONE && isnan(most)))
    return weir_shape_fail(ctx, WEIR_W2007, "a limit is NaN");
  if (both && (ints ? low->i > high->i : least > most))
    return weir_shape_fail(ctx, WEIR_W2007, "min is %.17g, above max, %.17g",
                           least, most);
  return weir_rule_unary(ctx);
}

/* |dy| where the comparison of |x| with the limit holds. */
static weir_ref keep(weir_grad_ctx *ctx, const char *compare, weir_ref x,
                     const char *limit, weir_ref dy, weir_ref zero) {
  weir_ref bound =
      weir_g_number(ctx, x, weir_attr_number(weir_grad_attr(ctx, limit)));
  weir_ref inside = weir_g2(ctx, compare, x, bound);
  return weir_g3(ctx, "where", inside, dy, zero);
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0), dy = weir_grad_dy(ctx, 0);

  weir_ref zero = weir_g_number(ctx, x, 0);
  if (weir_grad_attr(ctx, "min")->kind != WEIR_ATTR_NONE)
    dy = keep(ctx, "greater_equal", x, "min", dy, zero);
  if (weir_grad_attr(ctx, "max")->kind != WEIR_ATTR_NONE)
    dy = keep(ctx, "less_equal", x, "max", dy, zero);
  weir_grad_add(ctx, 0, dy);
  return WEIR_OK;
}

const weir_op_def weir_op_clip = {
    .name = "clip",
    .summary = "x, but at least min and at most max.",
    .doc =
        "clip(NaN) is NaN. Of integers a limit that is no integer counts as "
        "the next integer within. The gradient is 1 at the limits "
        "themselves.",
    .example = "clip(x, min=0, max=6)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_NUMBERS}},
    .attrs = {{"min", WEIR_ATTR_NUMBER, "none", "lowest value; none: no limit"},
              {"max", WEIR_ATTR_NUMBER, "none",
               "highest value; none: no limit"}},
    .refuses = {"min above max", "a limit that is NaN", "bool"},
    .flags = WEIR_OP_ELEMENTWISE,
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_unary};
