/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/optim/apply.h"

static weir_status shape(weir_shape_ctx *ctx) {
  static const char *const names[] = {"var", "accum", "grad", "lr", "scale"};
  WEIR_TRY(weir_rule_not_negative(ctx, "l1"));
  WEIR_TRY(weir_rule_not_negative(ctx, "l2"));
  return weir_rule_apply(ctx, names, 1u << 3 | 1u << 4);
}

const weir_op_def weir_op_apply_proximal_adagrad = {
    .name = "apply_proximal_adagrad",
    .summary = "One step of Adagrad, then one towards 0.",
    .doc =
        "With g = scale grad, accum = accum + g g, r = lr / sqrt(accum) and z "
        "= var - r g, var = sign(z) max(|z| - r l1, 0) / (1 + r l2): l1 makes "
        "rarely used weights exactly 0. Where accum is 0, var stays. The slot "
        "starts at 0 or above; 0.1 is usual.",
    .source = "Duchi, Hazan and Singer, JMLR 12 (2011) 2121-2159, section 5",
    .example = "apply_proximal_adagrad(w, a, g, 0.1, l1=0.001)",
    .inputs = {{"var", "T"},
               {"accum", "T"},
               {"grad", "T"},
               WEIR_APPLY_LR,
               WEIR_APPLY_SCALE},
    .outputs = {{"var", "T"}, {"accum", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"l1", WEIR_ATTR_FLOAT, "0.0", "weight of the sum of |var|"},
              {"l2", WEIR_ATTR_FLOAT, "0.0",
               "weight of half the sum of squares"}},
    .refuses = {WEIR_APPLY_REFUSES, "an l1 or l2 below 0"},
    .flags = WEIR_OP_ROWS | WEIR_OP_MAY_FAIL,
    .shape = shape,
    .cost = weir_cost_apply};
