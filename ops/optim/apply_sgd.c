/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/optim/apply.h"

static weir_status shape(weir_shape_ctx *ctx) {
  static const char *const names[] = {"var", "grad", "lr", "scale"};
  WEIR_TRY(weir_rule_not_negative(ctx, "l2"));
  return weir_rule_apply(ctx, names, 1u << 2 | 1u << 3);
}

const weir_op_def weir_op_apply_sgd = {
    .name = "apply_sgd",
    .summary = "One step of gradient descent: var - lr g.",
    .doc = "g = scale grad + l2 var.",
    .source = "Robbins and Monro, Ann. Math. Statist. 22 (1951) 400-407",
    .example = "apply_sgd(w, g, 0.1)",
    .inputs = {{"var", "T"}, {"grad", "T"}, WEIR_APPLY_LR, WEIR_APPLY_SCALE},
    .outputs = {{"var", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {WEIR_APPLY_L2},
    .refuses = {WEIR_APPLY_REFUSES, "an l2 below 0"},
    .flags = WEIR_OP_ELEMENTWISE | WEIR_OP_MAY_FAIL,
    .shape = shape,
    .cost = weir_cost_apply};
