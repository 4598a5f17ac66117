/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/optim/apply.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  static const char *const names[] = {"var", "m",    "v",    "grad",
                                      "lr",  "step", "scale"};
  WEIR_TRY(weir_rule_share(ctx, "beta1"));
  WEIR_TRY(weir_rule_share(ctx, "beta2"));
  WEIR_TRY(weir_rule_finite(ctx, "epsilon", true));
  WEIR_TRY(weir_rule_not_negative(ctx, "weight_decay"));
  return weir_rule_apply(ctx, names, 1u << 4 | 1u << 5 | 1u << 6);
}

const weir_op_def weir_op_apply_adamw = {
    .name = "apply_adamw",
    .summary = "One step of Adam with decay apart from the gradient.",
    .doc =
        "var is first multiplied by 1 - lr weight_decay, then apply_adam's "
        "step is made, without l2.",
    .source = "Loshchilov and Hutter, arXiv:1711.05101, algorithm 2",
    .example = "apply_adamw(w, m, v, g, 0.001, step)",
    .inputs = {{"var", "T"},
               {"m", "T"},
               {"v", "T"},
               {"grad", "T"},
               WEIR_APPLY_LR,
               WEIR_APPLY_STEP,
               WEIR_APPLY_SCALE},
    .outputs = {{"var", "T"}, {"m", "T"}, {"v", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"beta1", WEIR_ATTR_FLOAT, "0.9", "share of m kept"},
              {"beta2", WEIR_ATTR_FLOAT, "0.999", "share of v kept"},
              {"epsilon", WEIR_ATTR_FLOAT, "1e-8",
               "added to the square root of V"},
              {"weight_decay", WEIR_ATTR_FLOAT, "0.01",
               "share of var, times lr, that each step takes away"}},
    .refuses = {WEIR_APPLY_REFUSES, "a beta outside [0, 1)",
                "an epsilon that is not above 0", "a weight_decay below 0",
                "a step below 1 (when it runs)"},
    .flags = WEIR_OP_MAY_FAIL,
    .shape = shape,
    .cost = weir_cost_apply};
