/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "ops/cost.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  int64_t num = weir_rule_int(ctx, "num");
  weir_shape y = {.rank = 1};
  WEIR_TRY(weir_rule_finite(ctx, "start", false));
  WEIR_TRY(weir_rule_finite(ctx, "stop", false));
  if (num < 0)
    return weir_shape_fail(ctx, WEIR_W2007,
                           "num is %" PRId64 ", expected 0 or more", num);
  y.dims[0] = weir_dim_of(num);
  return weir_shape_set(ctx, 0, &y);
}

const weir_op_def weir_op_linspace = {
    .name = "linspace",
    .summary = "num numbers at equal distances, from start to stop.",
    .doc = "With num = 1 only start.",
    .example = "linspace(0, 1, 11)",
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_FLOATS, "dtype"}},
    .attrs = {{"start", WEIR_ATTR_FLOAT, NULL, "the first"},
              {"stop", WEIR_ATTR_FLOAT, NULL, "the last"},
              {"num", WEIR_ATTR_INT, NULL, "how many"},
              {"dtype", WEIR_ATTR_DTYPE, "f32", "dtype of the result"}},
    .refuses = {"a negative num", "numbers that are not finite",
                "integer dtypes"},
    .shape = shape,
    .cost = weir_cost_unary};
