/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "ops/cost.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  const weir_attr *m = weir_shape_attr(ctx, "m");
  int64_t rows = weir_rule_int(ctx, "n");
  int64_t columns = m->kind == WEIR_ATTR_INT ? m->i : rows;
  if (rows < 0 || columns < 0)
    return weir_shape_fail(ctx, WEIR_W2002,
                           "%" PRId64 " by %" PRId64 ", expected 0 or more",
                           rows, columns);
  weir_shape y = weir_shape_of(2, (int64_t[]){rows, columns});
  return weir_shape_set(ctx, 0, &y);
}

const weir_op_def weir_op_eye = {
    .name = "eye",
    .summary = "The n by m matrix with 1 on the diagonal and 0 elsewhere.",
    .example = "eye(3)",
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES, "dtype"}},
    .attrs = {{"n", WEIR_ATTR_INT, NULL, "rows"},
              {"m", WEIR_ATTR_INT, "none", "columns; none: n"},
              {"dtype", WEIR_ATTR_DTYPE, "f32", "dtype of the result"}},
    .refuses = {"negative n or m"},
    .shape = shape,
    .cost = weir_cost_bytes};
