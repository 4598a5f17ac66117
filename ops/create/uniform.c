/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/create/random.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  double low = weir_rule_float(ctx, "low"), high = weir_rule_float(ctx, "high");
  WEIR_TRY(weir_rule_finite(ctx, "low", false));
  WEIR_TRY(weir_rule_finite(ctx, "high", false));
  if (low > high)
    return weir_shape_fail(ctx, WEIR_W2007, "low is %g, above high, %g", low,
                           high);
  return weir_rule_attr_shape(ctx);
}

const weir_op_def weir_op_uniform = {
    .name = "uniform",
    .summary = "Random numbers, equally likely from low to high.",
    .doc = WEIR_RANDOM_DOC " high itself does not occur.",
    .source = WEIR_RANDOM_SOURCE,
    .example = "uniform(-1, 1, shape=[2, 3])",
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_FLOATS, "dtype"}},
    .attrs = {{"low", WEIR_ATTR_FLOAT, "0.0", "lowest"},
              {"high", WEIR_ATTR_FLOAT, "1.0", "end"},
              WEIR_RANDOM_ATTRS},
    .refuses = {"low above high", "limits that are not finite",
                WEIR_RANDOM_REFUSES},
    .flags = WEIR_OP_RANDOM,
    .shape = shape,
    .cost = weir_cost_math};
