/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/grads.h"
#include "ops/recurrent/recurrent.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_recurrence s;
  WEIR_TRY(weir_rule_recurrence(ctx, 4, &s));
  WEIR_TRY(weir_rule_fits(ctx, 3, "bias", &s.row, "[4 * units]"));
  WEIR_TRY(weir_rule_fits(ctx, 4, "h0", &s.state, "[batch, units]"));
  WEIR_TRY(weir_rule_fits(ctx, 5, "c0", &s.state, "[batch, units]"));
  WEIR_TRY(weir_shape_set(ctx, 0, &s.sequence));
  WEIR_TRY(weir_shape_set(ctx, 1, &s.state));
  WEIR_TRY(weir_shape_set(ctx, 2, &s.state));
  WEIR_TRY(weir_shape_set(ctx, 3, &s.gates));
  return weir_shape_set(ctx, 4, &s.sequence);
}

static weir_status grad(weir_grad_ctx *ctx) {
  WEIR_TRY(weir_grad_not_through(ctx, 3));
  WEIR_TRY(weir_grad_not_through(ctx, 4));
  weir_ref in[] = {weir_grad_in(ctx, 2),  weir_grad_out(ctx, 3),
                   weir_grad_out(ctx, 4), weir_grad_optional(ctx, 5),
                   weir_grad_dy(ctx, 0),  weir_grad_dy(ctx, 1),
                   weir_grad_dy(ctx, 2)};
  weir_named_attr attrs[] = {{"reverse", *weir_grad_attr(ctx, "reverse")},
                             {NULL, {WEIR_ATTR_NONE, 0, {0}}}};
  weir_ref dz = weir_grad_node(ctx, "lstm_grad", 7, in, attrs);
  weir_grad_recurrence(ctx, dz, dz, 4);
  for (uint32_t i = 4; i < 6; i++)
    if (weir_grad_optional(ctx, i) != WEIR_NO_VALUE)
      weir_grad_add(ctx, i, weir_grad_next(dz, i - 3));
  return WEIR_OK;
}

const weir_op_def weir_op_lstm = {
    .name = "lstm",
    .aliases = {"lstm_layer"},
    .summary = "Long short-term memory over a sequence.",
    .doc =
        "z = x_t w + h r + bias holds four gates side by side, in the order i, "
        "f, g, o: c = sigmoid(f) c + sigmoid(i) tanh(g), h = sigmoid(o) "
        "tanh(c). y has h of every step, h and c those of the last; reverse "
        "begins with the last step of x. PyTorch's weight_ih_l0 and "
        "weight_hh_l0 are w and r transposed, its two biases are added; ONNX "
        "has the order i, o, f, g.",
    .source =
        "Hochreiter and Schmidhuber, Neural Computation 9 (1997) 1735-1780; "
        "Gers, Schmidhuber and Cummins, Neural Computation 12 (2000) 2451-2471",
    .example = "lstm(x, w, r, bias, h0, c0)",
    .inputs = {{"x", "T", "[b, t, d]"},
               {"w", "T", "[d, 4 u]"},
               {"r", "T", "[u, 4 u]"},
               {"bias", "T", "[4 u]; zeros", .optional = true},
               {"h0", "T", "[b, u]; zeros", .optional = true},
               {"c0", "T", "[b, u]; zeros", .optional = true}},
    .outputs = {{"y", "T", "[b, t, u]"},
                {"h", "T", "[b, u]"},
                {"c", "T", "[b, u]"},
                {"gates", "T", "[b, t, 4 u], after sigmoid and tanh",
                 .optional = true},
                {"cells", "T", "[b, t, u], c of every step", .optional = true}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"reverse", WEIR_ATTR_BOOL, "false", "from the last step on"}},
    .refuses = {"ranks other than 3, 2 and 2",
                "weights that do not fit x or each other",
                "a bias or states of other shapes", "integers"},
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_recurrence};
