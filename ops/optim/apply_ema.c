/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/optim/apply.h"

static weir_status shape(weir_shape_ctx *ctx) {
  static const char *const names[] = {"average", "var"};
  WEIR_TRY(weir_rule_share(ctx, "decay"));
  return weir_rule_apply(ctx, names, 0);
}

const weir_op_def weir_op_apply_ema = {
    .name = "apply_ema",
    .summary = "One step of an exponential moving average.",
    .doc =
        "decay average + (1 - decay) var. The average starts at the variable's "
        "first value.",
    .source = "Polyak and Juditsky, SIAM J. Control Optim. 30 (1992) 838-855",
    .example = "apply_ema(average, w, decay=0.99)",
    .inputs = {{"average", "T"}, {"var", "T"}},
    .outputs = {{"average", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"decay", WEIR_ATTR_FLOAT, "0.999", "share of average kept"}},
    .refuses = {"an average of another shape than the variable",
                "a decay outside [0, 1)", "integers"},
    .flags = WEIR_OP_ROWS,
    .shape = shape,
    .cost = weir_cost_apply};
