/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/optim/apply.h"

static weir_status shape(weir_shape_ctx *ctx) {
  return weir_rule_adam(ctx, "l2");
}

const weir_op_def weir_op_apply_adam = {
    .name = "apply_adam",
    .summary = "One step of Adam.",
    .doc =
        "m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g g, var = var "
        "- lr M / (sqrt(V) + epsilon), with M = m / (1 - beta1^step) and V = v "
        "/ (1 - beta2^step). g = scale grad + l2 var. The slots start at 0; "
        "step is 1 in the first update.",
    .source = "Kingma and Ba, arXiv:1412.6980, algorithm 1",
    .example = "apply_adam(w, m, v, g, 0.001, step)",
    .attrs = {WEIR_ADAM_ATTRS, WEIR_APPLY_L2},
    .refuses = {WEIR_ADAM_REFUSES("an l2 below 0")},
    .shape = shape,
    WEIR_ADAM_FIELDS};
