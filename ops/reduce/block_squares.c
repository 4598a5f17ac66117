/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/reduce/norm_blocks.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  const int64_t most = INT64_MAX / 4; /* places and shapes stay below 2^63 */
  const weir_shape *x = weir_shape_in(ctx, 0);
  int64_t at = weir_rule_int(ctx, "at");
  if (at < 0 || at > most)
    return weir_shape_fail(ctx, WEIR_W2007, "at is outside [0, 2^61)");
  weir_shape y = {.rank = WEIR_RANK_UNKNOWN};
  if (!weir_shape_known(x)) return weir_shape_set(ctx, 0, &y);
  int64_t n = weir_norm_stretches(at, weir_shape_elements(x));
  y = weir_shape_of(1, &n);
  return weir_shape_set(ctx, 0, &y);
}

const weir_op_def weir_op_block_squares = {
    .name = "block_squares",
    .summary = "Sums of squares of the stretches of x in a longer vector.",
    .doc =
        "x begins at element `at` of the vector, which is cut into blocks of "
        "32768 elements; there is a sum for each block that x has elements of. "
        "global_norm adds in this order, so its parts can be computed apart: "
        "parameter servers, which have a gradient each, exchange these sums.",
    .example = "block_squares(x, at=32760)",
    .inputs = {{"x", "T"}},
    .outputs = {{"sums", "f64", "[blocks]"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"at", WEIR_ATTR_INT, "0", "elements of the vector before x"}},
    .refuses = {"a negative at", "integers"},
    .shape = shape,
    .cost = weir_cost_reduce};
