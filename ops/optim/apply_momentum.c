/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/optim/apply.h"

static weir_status shape(weir_shape_ctx *ctx) {
  static const char *const names[] = {"var", "accum", "grad", "lr", "scale"};
  WEIR_TRY(weir_rule_share(ctx, "momentum"));
  WEIR_TRY(weir_rule_not_negative(ctx, "l2"));
  return weir_rule_apply(ctx, names, 1u << 3 | 1u << 4);
}

const weir_op_def weir_op_apply_momentum = {
    .name = "apply_momentum",
    .summary = "One step of gradient descent with momentum.",
    .doc =
        "accum = momentum accum + g and var = var - lr accum; with nesterov "
        "var = var - lr (g + momentum accum), of the new accum. g = scale grad "
        "+ l2 var. The slot starts at 0.",
    .source =
        "Polyak, USSR Comput. Math. 4 (1964) 1-17; Sutskever et al., ICML 2013",
    .example = "apply_momentum(w, a, g, 0.1, momentum=0.9)",
    .inputs = {{"var", "T"},
               {"accum", "T"},
               {"grad", "T"},
               WEIR_APPLY_LR,
               WEIR_APPLY_SCALE},
    .outputs = {{"var", "T"}, {"accum", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"momentum", WEIR_ATTR_FLOAT, "0.9", "share of accum kept"},
              {"nesterov", WEIR_ATTR_BOOL, "false",
               "look ahead: Nesterov's form"},
              WEIR_APPLY_L2},
    .refuses = {WEIR_APPLY_REFUSES, "a momentum outside [0, 1)",
                "an l2 below 0"},
    .flags = WEIR_OP_ROWS | WEIR_OP_MAY_FAIL,
    .shape = shape,
    .cost = weir_cost_apply};
