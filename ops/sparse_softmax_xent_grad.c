/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/norm.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape loss, same;
  WEIR_TRY(weir_rule_labels(ctx, &loss));
  WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, 2), "dy", &loss, "the loss",
                          &same));
  return weir_rule_unary(ctx);
}

const weir_op_def weir_op_sparse_softmax_xent_grad = {
    .name = "sparse_softmax_xent_grad",
    .summary =
        "Gradient of sparse_softmax_xent: (softmax(logits) - one_hot(labels)) "
        "dy.",
    .example = "sparse_softmax_xent_grad(logits, labels, dy)",
    .inputs = {{"logits", "T", "[..., c]"},
               {"labels", "I", "[...]"},
               {"dy", "T", "[...]"}},
    .outputs = {{"dlogits", "T", "[..., c]"}},
    .types = {{"T", WEIR_FLOATS}, {"I", WEIR_INTS}},
    .refuses = {"a label outside 0..c-1 (when it runs)",
                "labels or dy of another shape", "scalar logits",
                "zero classes", "float labels"},
    .flags = WEIR_OP_MAY_FAIL,
    .shape = shape,
    .cost = weir_cost_math};
