/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/create/random.h"

weir_status weir_rule_normal(weir_shape_ctx *ctx) {
  double stddev = weir_rule_float(ctx, "stddev");
  WEIR_TRY(weir_rule_finite(ctx, "mean", false));
  WEIR_TRY(weir_rule_finite(ctx, "stddev", false));
  if (stddev < 0)
    return weir_shape_fail(ctx, WEIR_W2007, "stddev is %g, expected 0 or more",
                           stddev);
  return weir_rule_attr_shape(ctx);
}
