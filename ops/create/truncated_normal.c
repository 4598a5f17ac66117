/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  double stddev = weir_rule_float(ctx, "stddev");
  WEIR_TRY(weir_rule_finite(ctx, "mean", false));
  WEIR_TRY(weir_rule_finite(ctx, "stddev", false));
  if (stddev < 0)
    return weir_shape_fail(ctx, WEIR_W2007, "stddev is %g, expected 0 or more",
                           stddev);
  return weir_rule_attr_shape(ctx);
}

const weir_op_def weir_op_truncated_normal = {
    .name = "truncated_normal",
    .summary =
        "Normal random numbers at most two standard deviations from the mean.",
    .doc =
        "The numbers depend on the seeds of graph and node and on the step, "
        "not on threads or devices.",
    .source = "Philox: Salmon et al., SC11 (2011), article 16",
    .example = "truncated_normal(0, 0.1, shape=[2, 3])",
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_FLOATS, "dtype"}},
    .attrs = {{"mean", WEIR_ATTR_FLOAT, "0.0", "mean"},
              {"stddev", WEIR_ATTR_FLOAT, "1.0",
               "standard deviation before the tails are cut"},
              {"shape", WEIR_ATTR_INTS, NULL, "shape of the result"},
              {"dtype", WEIR_ATTR_DTYPE, "f32", "dtype of the result"},
              {"seed", WEIR_ATTR_INT, "0",
               "added to the seed of graph and node"}},
    .refuses = {"a negative stddev", "numbers that are not finite",
                "negative dimensions", "more than 8 dimensions",
                "integer dtypes"},
    .flags = WEIR_OP_RANDOM,
    .shape = shape,
    .cost = weir_cost_math};
