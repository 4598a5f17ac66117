/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/optim/apply.h"

#include <math.h>

#include "ops/cost.h"
#include "ops/rules.h"

weir_status weir_rule_apply(weir_shape_ctx *ctx, const char *const *names,
                            unsigned scalars) {
  weir_shape var = *weir_shape_in(ctx, 0);
  for (uint32_t i = 1; i < weir_shape_in_count(ctx); i++) {
    weir_shape same;
    if (!weir_rule_has(ctx, i)) continue;
    if (scalars & 1u << i) {
      WEIR_TRY(weir_rule_rank(ctx, i, names[i], 0, 0));
      continue;
    }
    WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, i), names[i], &var,
                            names[0], &same));
    var = same;
  }
  for (uint32_t i = 0; i < weir_shape_out_count(ctx); i++)
    WEIR_TRY(weir_shape_set(ctx, i, &var));
  return WEIR_OK;
}

weir_status weir_rule_share(weir_shape_ctx *ctx, const char *name) {
  double value = weir_rule_float(ctx, name);
  if (value >= 0 && value < 1) return WEIR_OK;
  return weir_shape_fail(ctx, WEIR_W2007, "%s is %g, expected 0 <= %s < 1",
                         name, value, name);
}

weir_status weir_rule_not_negative(weir_shape_ctx *ctx, const char *name) {
  double value = weir_rule_float(ctx, name);
  if (value >= 0 && isfinite(value)) return WEIR_OK;
  return weir_shape_fail(ctx, WEIR_W2007,
                         "%s is %g, expected a finite number of at least 0",
                         name, value);
}

weir_status weir_rule_adam(weir_shape_ctx *ctx, const char *decay) {
  static const char *const names[] = {"var", "m",    "v",    "grad",
                                      "lr",  "step", "scale"};
  WEIR_TRY(weir_rule_share(ctx, "beta1"));
  WEIR_TRY(weir_rule_share(ctx, "beta2"));
  WEIR_TRY(weir_rule_finite(ctx, "epsilon", true));
  WEIR_TRY(weir_rule_not_negative(ctx, decay));
  return weir_rule_apply(ctx, names, 1u << 4 | 1u << 5 | 1u << 6);
}

void weir_cost_apply(const weir_call *call, weir_cost *out) {
  weir_cost_unary(call, out);
  out->flops = weir_cost_mul(out->flops, 10);
}
