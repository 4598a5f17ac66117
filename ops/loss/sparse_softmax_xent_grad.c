/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/nn/norm.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape loss, same;
  WEIR_TRY(weir_rule_labels(ctx, &loss));
  WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, 2), "dy", &loss, "the loss",
                          &same));
  return weir_rule_unary(ctx);
}

/* With g the gradient of dlogits and p = softmax(logits): that of dy is sum(g
 * p)
 * - g[label], that of logits dy p (g - sum(g p)). */
static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref logits = weir_grad_in(ctx, 0), labels = weir_grad_in(ctx, 1);
  weir_ref dy = weir_grad_in(ctx, 2), g = weir_grad_dy(ctx, 0);
  int last[] = {weir_grad_shape(ctx, logits)->rank - 1};
  weir_ref one = weir_g_number(ctx, dy, 1);
  weir_ref p = weir_g1a(ctx, "softmax", logits, "axis", weir_attr_int(-1));
  weir_ref gp = weir_g2(ctx, "mul", g, p);
  if (weir_grad_wanted(ctx, 2)) { /* (p - one_hot) is the op for a dy of 1 */
    weir_ref ones = weir_g_expand_like(ctx, one, dy);
    weir_ref off =
        weir_g3(ctx, "sparse_softmax_xent_grad", logits, labels, ones);
    weir_grad_add(ctx, 2,
                  weir_g_sum(ctx, weir_g2(ctx, "mul", g, off), 1, last, false));
  }
  if (weir_grad_wanted(ctx, 0)) {
    weir_ref mean = weir_g_sum(ctx, gp, 1, last, true);
    weir_ref slope = weir_g2(ctx, "mul", p, weir_g2(ctx, "sub", g, mean));
    weir_dim axis = weir_dim_of(-1);
    weir_ref wide =
        weir_g1a(ctx, "unsqueeze", dy, "axis", weir_attr_dims(1, &axis));
    weir_grad_add(ctx, 0, weir_g2(ctx, "mul", slope, wide));
  }
  return WEIR_OK;
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
    .grad = grad,
    .cost = weir_cost_math};
