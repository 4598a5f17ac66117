/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "ops/cost.h"
#include "ops/nn/norm.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  int64_t k = weir_rule_int(ctx, "k");
  weir_shape y;
  if (k < 1)
    return weir_shape_fail(ctx, WEIR_W2007,
                           "k is %" PRId64 ", expected 1 or more", k);
  WEIR_TRY(weir_rule_classes(ctx, "predictions", "targets", &y));
  return weir_shape_set(ctx, 0, &y);
}

const weir_op_def weir_op_in_top_k = {
    .name = "in_top_k",
    .summary = "Whether the target's prediction is among the k largest.",
    .doc =
        "True where fewer than k predictions of the row are larger than the "
        "target's: equal ones do not push it out. A NaN counts as larger than "
        "all, and as a target's prediction gives false. The mean of the "
        "result, cast to float, is the top-k accuracy.",
    .example = "in_top_k(logits, labels, k=5)",
    .inputs = {{"predictions", "T", "[..., c]"}, {"targets", "I", "[...]"}},
    .outputs = {{"y", "bool", "[...]"}},
    .types = {{"T", WEIR_FLOATS}, {"I", WEIR_INTS}},
    .attrs = {{"k", WEIR_ATTR_INT, NULL, "how many count"}},
    .refuses = {"a k below 1", "a target outside 0..c-1 (when it runs)",
                "targets of another shape", "scalar predictions",
                "zero classes", "float targets"},
    .flags = WEIR_OP_MAY_FAIL,
    .shape = shape,
    .cost = weir_cost_reduce};
