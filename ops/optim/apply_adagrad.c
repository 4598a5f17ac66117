/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/optim/apply.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  static const char *const names[] = {"var", "accum", "grad", "lr", "scale"};
  WEIR_TRY(weir_rule_finite(ctx, "epsilon", true));
  WEIR_TRY(weir_rule_not_negative(ctx, "l2"));
  return weir_rule_apply(ctx, names, 1u << 3 | 1u << 4);
}

const weir_op_def weir_op_apply_adagrad = {
    .name = "apply_adagrad",
    .summary = "One step of Adagrad.",
    .doc =
        "accum = accum + g g and var = var - lr g / (sqrt(accum) + epsilon). g "
        "= scale grad + l2 var. The slot starts at 0 or above.",
    .source = "Duchi, Hazan and Singer, JMLR 12 (2011) 2121-2159",
    .example = "apply_adagrad(w, a, g, 0.1)",
    .inputs = {{"var", "T"},
               {"accum", "T"},
               {"grad", "T"},
               WEIR_APPLY_LR,
               WEIR_APPLY_SCALE},
    .outputs = {{"var", "T"}, {"accum", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"epsilon", WEIR_ATTR_FLOAT, "1e-10",
               "added to the square root of accum"},
              WEIR_APPLY_L2},
    .refuses = {WEIR_APPLY_REFUSES, "an epsilon that is not above 0",
                "an l2 below 0"},
    .flags = WEIR_OP_ROWS | WEIR_OP_MAY_FAIL,
    .shape = shape,
    .cost = weir_cost_apply};
