/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/recurrent/recurrent.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_recurrence s;
  WEIR_TRY(weir_rule_recurrence_back(ctx, 1, 1, 1, &s));
  WEIR_TRY(weir_rule_fits(ctx, 2, "dy", &s.sequence, "rnn's y"));
  WEIR_TRY(weir_rule_fits(ctx, 3, "dh", &s.state, "[batch, units]"));
  WEIR_TRY(weir_shape_set(ctx, 0, &s.gates));
  return weir_shape_set(ctx, 1, &s.state);
}

const weir_op_def weir_op_rnn_grad = {
    .name = "rnn_grad",
    .summary = "Gradient of rnn with respect to its sums and first state.",
    .doc =
        "dz is the gradient of x_t w + h r + bias; those of x, w, r and the "
        "bias are products and sums of it.",
    .source =
        "Backpropagation through time: Werbos, Proceedings of the IEEE 78 "
        "(1990) 1550-1560",
    .example = "rnn_grad(r, y, dy, dh)",
    .inputs = {{"r", "T", "[u, u]"},
               {"y", "T", "[b, t, u]"},
               {"dy", "T", "[b, t, u]; zeros", .optional = true},
               {"dh", "T", "[b, u]; zeros", .optional = true}},
    .outputs = {{"dz", "T", "[b, t, u]"}, {"dh0", "T", "[b, u]"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"act", WEIR_ATTR_STRING, "tanh", "as rnn had it", "tanh|relu"},
              {"reverse", WEIR_ATTR_BOOL, "false", "as rnn had it"}},
    .refuses = {"ranks other than 2 and 3", "an r of another shape",
                "operands that do not fit rnn's outputs", "integers"},
    .shape = shape,
    .cost = weir_cost_recurrence_back};
