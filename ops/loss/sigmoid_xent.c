/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape y;
  WEIR_TRY(weir_rule_same(ctx, weir_shape_in(ctx, 1), "labels",
                          weir_shape_in(ctx, 0), "logits", &y));
  return weir_shape_set(ctx, 0, &y);
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref logits = weir_grad_in(ctx, 0), labels = weir_grad_in(ctx, 1);
  weir_ref dy = weir_grad_dy(ctx, 0);
  weir_ref off = weir_g2(ctx, "sub", weir_g1(ctx, "sigmoid", logits), labels);
  weir_grad_add(ctx, 0, weir_g2(ctx, "mul", off, dy));
  if (weir_grad_wanted(ctx, 1))
    weir_grad_add(ctx, 1, weir_g1(ctx, "neg", weir_g2(ctx, "mul", logits, dy)));
  return WEIR_OK;
}

const weir_op_def weir_op_sigmoid_xent = {
    .name = "sigmoid_xent",
    .summary = "Cross entropy of sigmoid(logits), element by element.",
    .doc =
        "-labels log(sigmoid(logits)) - (1 - labels) log(1 - sigmoid(logits)), "
        "without overflow. Shapes do not broadcast.",
    .example = "sigmoid_xent(logits, labels)",
    .inputs = {{"logits", "T"}, {"labels", "T"}},
    .outputs = {{"loss", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .refuses = {"labels of another shape", "integers"},
    .flags = WEIR_OP_ELEMENTWISE,
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_math};
