/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/optim/apply.h"

static weir_status shape(weir_shape_ctx *ctx) {
  static const char *const names[] = {"var", "grad", "lr", "scale"};
  WEIR_TRY(weir_rule_not_negative(ctx, "l1"));
  WEIR_TRY(weir_rule_not_negative(ctx, "l2"));
  return weir_rule_apply(ctx, names, 1u << 2 | 1u << 3);
}

const weir_op_def weir_op_apply_proximal_sgd = {
    .name = "apply_proximal_sgd",
    .summary = "One step of gradient descent, then one towards 0.",
    .doc =
        "With z = var - lr scale grad, var = sign(z) max(|z| - lr l1, 0) / (1 "
        "+ lr l2): l1 makes small weights exactly 0, l2 shrinks all.",
    .source = "Duchi and Singer, JMLR 10 (2009) 2899-2934",
    .example = "apply_proximal_sgd(w, g, 0.1, l1=0.001)",
    .inputs = {{"var", "T"}, {"grad", "T"}, WEIR_APPLY_LR, WEIR_APPLY_SCALE},
    .outputs = {{"var", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"l1", WEIR_ATTR_FLOAT, "0.0", "weight of the sum of |var|"},
              {"l2", WEIR_ATTR_FLOAT, "0.0",
               "weight of half the sum of squares"}},
    .refuses = {WEIR_APPLY_REFUSES, "an l1 or l2 below 0"},
    .flags = WEIR_OP_ROWS | WEIR_OP_MAY_FAIL,
    .shape = shape,
    .cost = weir_cost_apply};
