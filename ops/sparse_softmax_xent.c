/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/grads.h"
#include "ops/norm.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape loss;
  WEIR_TRY(weir_rule_labels(ctx, &loss));
  return weir_shape_set(ctx, 0, &loss);
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref logits = weir_grad_in(ctx, 0), labels = weir_grad_in(ctx, 1);
  weir_ref dy = weir_grad_dy(ctx, 0);
  weir_grad_add(ctx, 0,
                weir_g3(ctx, "sparse_softmax_xent_grad", logits, labels, dy));
  return WEIR_OK;
}

const weir_op_def weir_op_sparse_softmax_xent = {
    .name = "sparse_softmax_xent",
    .summary = "Cross entropy of softmax(logits) for labels given by number.",
    .doc = "log(sum(exp(logits))) - logits[label], without overflow.",
    .example = "sparse_softmax_xent(logits, labels)",
    .inputs = {{"logits", "T", "[..., c]"}, {"labels", "I", "[...]"}},
    .outputs = {{"loss", "T", "[...]"}},
    .types = {{"T", WEIR_FLOATS}, {"I", WEIR_INTS}},
    .refuses = {"a label outside 0..c-1 (when it runs)",
                "labels of another shape", "scalar logits", "zero classes",
                "float labels"},
    .flags = WEIR_OP_MAY_FAIL,
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_math};
