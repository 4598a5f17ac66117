/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/recurrent/recurrent.h"

static weir_status shape(weir_shape_ctx *ctx) {
  static const char *const kStates[] = {"c0", "dy", "dh", "dc"};
  weir_recurrence s;
  WEIR_TRY(weir_rule_recurrence_back(ctx, 4, 1, 4, &s));
  WEIR_TRY(weir_rule_fits(ctx, 2, "cells", &s.sequence, "lstm's y"));
  for (uint32_t i = 3; i < 7; i++)
    WEIR_TRY(weir_rule_fits(ctx, i, kStates[i - 3],
                            i == 4 ? &s.sequence : &s.state,
                            i == 4 ? "lstm's y" : "[batch, units]"));
  WEIR_TRY(weir_shape_set(ctx, 0, &s.gates));
  WEIR_TRY(weir_shape_set(ctx, 1, &s.state));
  return weir_shape_set(ctx, 2, &s.state);
}

const weir_op_def weir_op_lstm_grad = {
    .name = "lstm_grad",
    .summary = "Gradient of lstm with respect to its gates and first states.",
    .doc =
        "gates and cells are lstm's extra outputs. dz is the gradient of x_t w "
        "+ h r "
        "+ bias; those of x, w, r and the bias are products and sums of it.",
    .source =
        "Backpropagation through time: Werbos, Proceedings of the IEEE 78 "
        "(1990) 1550-1560",
    .example = "lstm_grad(r, gates, cells, c0, dy, dh, dc)",
    .inputs = {{"r", "T", "[u, 4 u]"},
               {"gates", "T", "[b, t, 4 u]"},
               {"cells", "T", "[b, t, u]"},
               {"c0", "T", "[b, u]; zeros", .optional = true},
               {"dy", "T", "[b, t, u]; zeros", .optional = true},
               {"dh", "T", "[b, u]; zeros", .optional = true},
               {"dc", "T", "[b, u]; zeros", .optional = true}},
    .outputs = {{"dz", "T", "[b, t, 4 u]"},
                {"dh0", "T", "[b, u]"},
                {"dc0", "T", "[b, u]"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"reverse", WEIR_ATTR_BOOL, "false", "as lstm had it"}},
    .refuses = {"ranks other than 2 and 3", "an r of another shape",
                "operands that do not fit lstm's outputs", "integers"},
    .shape = shape,
    .cost = weir_cost_recurrence_back};
