/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "ops/cost.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  int64_t depth = weir_rule_int(ctx, "depth");
  weir_shape y = *weir_shape_in(ctx, 0);
  if (depth < 0 || depth > INT32_MAX)
    return weir_shape_fail(ctx, WEIR_W2007,
                           "depth is %" PRId64 ", expected 0 to 2147483647",
                           depth);
  if (y.rank < 0) return weir_shape_set(ctx, 0, &y);
  if (!weir_shape_push(&y, weir_dim_of(depth)))
    return weir_shape_fail(ctx, WEIR_W2003, "indices are %s, at most rank %d",
                           weir_shape_text(ctx, &y), WEIR_MAX_RANK - 1);
  return weir_shape_set(ctx, 0, &y);
}

const weir_op_def weir_op_one_hot = {
    .name = "one_hot",
    .summary = "1 at the index, 0 elsewhere, along a new last dimension.",
    .doc = "An index outside [0, depth) gives zeros only.",
    .example = "one_hot(labels, depth=10)",
    .inputs = {{"indices", "I"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES, "dtype"}, {"I", WEIR_INTS}},
    .attrs = {{"depth", WEIR_ATTR_INT, NULL, "size of the new dimension"},
              {"dtype", WEIR_ATTR_DTYPE, "f32", "dtype of the result"}},
    .refuses = {"a depth outside [0, 2^31)", "indices of rank 8",
                "float indices"},
    .shape = shape,
    .cost = weir_cost_unary};
