/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/nn/norm.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape loss, same;
  WEIR_TRY(weir_rule_shares(ctx, &loss));
  WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, 2), "dy", &loss, "the loss",
                          &same));
  return weir_rule_unary(ctx);
}

const weir_op_def weir_op_softmax_xent_grad = {
    .name = "softmax_xent_grad",
    .summary =
        "Gradient of softmax_xent: (softmax(logits) sum(labels) - labels) dy.",
    .example = "softmax_xent_grad(logits, labels, dy)",
    .inputs = {{"logits", "T", "[..., c]"},
               {"labels", "T", "[..., c]"},
               {"dy", "T", "[...]"}},
    .outputs = {{"dlogits", "T", "[..., c]"}},
    .types = {{"T", WEIR_FLOATS}},
    .refuses = {"labels or dy of another shape", "scalar logits",
                "zero classes", "integers"},
    .shape = shape,
    .cost = weir_cost_math};
