/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/nn/norm.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape loss;
  WEIR_TRY(weir_rule_shares(ctx, &loss));
  return weir_shape_set(ctx, 0, &loss);
}

/* dy with a last dimension of 1, so that it broadcasts with the classes. */
static weir_ref column(weir_grad_ctx *ctx) {
  return weir_g1a(ctx, "unsqueeze", weir_grad_dy(ctx, 0), "axis",
                  weir_attr_dims(1, (weir_dim[]){weir_dim_of(-1)}));
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref logits = weir_grad_in(ctx, 0), labels = weir_grad_in(ctx, 1);
  weir_ref dy = weir_grad_dy(ctx, 0);
  weir_grad_add(ctx, 0, weir_g3(ctx, "softmax_xent_grad", logits, labels, dy));
  if (weir_grad_wanted(ctx, 1)) {
    weir_ref log_p = weir_g1(ctx, "log_softmax", logits);
    weir_ref scaled = weir_g2(ctx, "mul", log_p, column(ctx));
    weir_grad_add(ctx, 1, weir_g1(ctx, "neg", scaled));
  }
  return WEIR_OK;
}

const weir_op_def weir_op_softmax_xent = {
    .name = "softmax_xent",
    .summary = "Cross entropy of softmax(logits) for labels given as shares.",
    .doc =
        "-sum(labels log_softmax(logits)) over the last dimension. The labels "
        "of a sample are its classes' probabilities; that they are from 0 to 1 "
        "and add to 1 is not checked, and not needed for the gradient.",
    .example = "softmax_xent(logits, labels)",
    .inputs = {{"logits", "T", "[..., c]"}, {"labels", "T", "[..., c]"}},
    .outputs = {{"loss", "T", "[...]"}},
    .types = {{"T", WEIR_FLOATS}},
    .refuses = {"labels of another shape", "scalar logits", "zero classes",
                "integers"},
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_math};
