/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/recurrent/recurrent.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_recurrence s;
  WEIR_TRY(weir_rule_recurrence_back(ctx, 3, 1, 3, &s));
  WEIR_TRY(weir_rule_fits(ctx, 2, "inner", &s.sequence, "gru's y"));
  WEIR_TRY(weir_rule_fits(ctx, 3, "y", &s.sequence, "gru's y"));
  WEIR_TRY(weir_rule_fits(ctx, 4, "h0", &s.state, "[batch, units]"));
  WEIR_TRY(weir_rule_fits(ctx, 5, "dy", &s.sequence, "gru's y"));
  WEIR_TRY(weir_rule_fits(ctx, 6, "dh", &s.state, "[batch, units]"));
  WEIR_TRY(weir_shape_set(ctx, 0, &s.gates));
  WEIR_TRY(weir_shape_set(ctx, 1, &s.gates));
  return weir_shape_set(ctx, 2, &s.state);
}

const weir_op_def weir_op_gru_grad = {
    .name = "gru_grad",
    .summary = "Gradient of gru with respect to its gates and first state.",
    .doc =
        "gates and inner are gru's extra outputs. dz is the gradient of x_t w "
        "+ "
        "bias, dq that of h r + rbias; those of x, w, r and the biases are "
        "products and sums of them.",
    .source =
        "Backpropagation through time: Werbos, Proceedings of the IEEE 78 "
        "(1990) 1550-1560",
    .example = "gru_grad(r, gates, inner, y, h0, dy, dh)",
    .inputs = {{"r", "T", "[u, 3 u]"},
               {"gates", "T", "[b, t, 3 u]"},
               {"inner", "T", "[b, t, u]"},
               {"y", "T", "[b, t, u]"},
               {"h0", "T", "[b, u]; zeros", .optional = true},
               {"dy", "T", "[b, t, u]; zeros", .optional = true},
               {"dh", "T", "[b, u]; zeros", .optional = true}},
    .outputs = {{"dz", "T", "[b, t, 3 u]"},
                {"dq", "T", "[b, t, 3 u]"},
                {"dh0", "T", "[b, u]"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"reverse", WEIR_ATTR_BOOL, "false", "as gru had it"}},
    .refuses = {"ranks other than 2 and 3", "an r of another shape",
                "operands that do not fit gru's outputs", "integers"},
    .shape = shape,
    .cost = weir_cost_recurrence_back};
