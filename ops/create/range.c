/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "ops/cost.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  double start = weir_rule_float(ctx, "start");
  double limit = weir_rule_float(ctx, "limit");
  double delta = weir_rule_float(ctx, "delta");
  double count = ceil((limit - start) / delta);
  weir_shape y = {.rank = 1};
  WEIR_TRY(weir_rule_finite(ctx, "start", false));
  WEIR_TRY(weir_rule_finite(ctx, "limit", false));
  WEIR_TRY(weir_rule_finite(ctx, "delta", false));
  if (delta == 0) return weir_shape_fail(ctx, WEIR_W2007, "delta is 0");
  if (!(count <= 9007199254740992.0))
    return weir_shape_fail(ctx, WEIR_W2001, "%g elements, at most 2^53", count);
  y.dims[0] = weir_dim_of(count > 0 ? (int64_t)count : 0);
  return weir_shape_set(ctx, 0, &y);
}

const weir_op_def weir_op_range = {
    .name = "range",
    .summary = "Numbers from start by delta, up to but not with limit.",
    .doc = "ceil((limit - start) / delta) elements, at least 0.",
    .example = "range(0, 10, 2)",
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_NUMBERS, "dtype"}},
    .attrs = {{"start", WEIR_ATTR_FLOAT, NULL, "the first"},
              {"limit", WEIR_ATTR_FLOAT, NULL, "not reached"},
              {"delta", WEIR_ATTR_FLOAT, "1.0", "distance"},
              {"dtype", WEIR_ATTR_DTYPE, "i64", "dtype of the result"}},
    .refuses = {"a delta of 0", "numbers that are not finite",
                "more than 2^53 elements"},
    .shape = shape,
    .cost = weir_cost_unary};
