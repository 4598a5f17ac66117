/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "ops/cost.h"
#include "ops/rules.h"

#define MOST INT64_C(9007199254740992) /* 2^53 */

/* How many integers there are from |start| by |delta|, which is not 0. */
static double count_ints(int64_t start, int64_t limit, int64_t delta) {
  __int128 way = (__int128)limit - start, step = delta;
  if (delta < 0) way = -way, step = -step;
  return way <= 0 ? 0 : (double)((way + step - 1) / step);
}

/* Integers if nothing says otherwise, floats where a number has a point. */
static weir_dtype plain_dtype(bool ints) {
  return ints ? WEIR_I64 : WEIR_F32;
}

static weir_status shape(weir_shape_ctx *ctx) {
  const weir_attr *start = weir_shape_attr(ctx, "start");
  const weir_attr *limit = weir_shape_attr(ctx, "limit");
  const weir_attr *delta = weir_shape_attr(ctx, "delta");
  const weir_attr *dtype = weir_shape_attr(ctx, "dtype");
  bool ints = start->kind == WEIR_ATTR_INT && limit->kind == WEIR_ATTR_INT &&
              delta->kind == WEIR_ATTR_INT;
  double by = weir_attr_number(delta), count = 0;
  weir_shape y = {.rank = 1};
  weir_shape_set_dtype(
      ctx, 0,
      dtype->kind == WEIR_ATTR_DTYPE ? dtype->dtype : plain_dtype(ints));
  WEIR_TRY(weir_rule_finite(ctx, "start", false));
  WEIR_TRY(weir_rule_finite(ctx, "limit", false));
  WEIR_TRY(weir_rule_finite(ctx, "delta", false));
  if (by == 0) return weir_shape_fail(ctx, WEIR_W2007, "delta is 0");
  if (ints)
    count = count_ints(start->i, limit->i, delta->i);
  else
    count = ceil((weir_attr_number(limit) - weir_attr_number(start)) / by);
  if (!(count <= (double)MOST))
    return weir_shape_fail(ctx, WEIR_W2001, "%g elements, at most 2^53", count);
  y.dims[0] = weir_dim_of(count > 0 ? (int64_t)count : 0);
  return weir_shape_set(ctx, 0, &y);
}

const weir_op_def weir_op_range = {
    .name = "range",
    .summary = "Numbers from start by delta, up to but not with limit.",
    .doc =
        "ceil((limit - start) / delta) elements, at least 0. Without dtype "
        "they are i64 where all three numbers are integers, else f32.",
    .example = "range(0, 10, 2)",
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_NUMBERS, "dtype"}},
    .attrs = {{"start", WEIR_ATTR_NUMBER, NULL, "the first"},
              {"limit", WEIR_ATTR_NUMBER, NULL, "not reached"},
              {"delta", WEIR_ATTR_NUMBER, "1", "distance"},
              {"dtype", WEIR_ATTR_DTYPE, "none", "dtype of the result"}},
    .refuses = {"a delta of 0", "numbers that are not finite",
                "more than 2^53 elements"},
    .shape = shape,
    .cost = weir_cost_unary};
