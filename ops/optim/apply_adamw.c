/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/optim/apply.h"

static weir_status shape(weir_shape_ctx *ctx) {
  return weir_rule_adam(ctx, "weight_decay");
}

const weir_op_def weir_op_apply_adamw = {
    .name = "apply_adamw",
    .summary = "One step of Adam with decay apart from the gradient.",
    .doc =
        "var is first multiplied by 1 - lr weight_decay, then apply_adam's "
        "step is made, without l2.",
    .source = "Loshchilov and Hutter, arXiv:1711.05101, algorithm 2",
    .example = "apply_adamw(w, m, v, g, 0.001, step)",
    .attrs = {WEIR_ADAM_ATTRS,
              {"weight_decay", WEIR_ATTR_FLOAT, "0.01",
               "share of var, times lr, that each step takes away"}},
    .refuses = {WEIR_ADAM_REFUSES("a weight_decay below 0")},
    .shape = shape,
    WEIR_ADAM_FIELDS};
