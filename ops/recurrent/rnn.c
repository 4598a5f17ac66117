/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/grads.h"
#include "ops/recurrent/recurrent.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_recurrence s;
  WEIR_TRY(weir_rule_recurrence(ctx, 1, &s));
  WEIR_TRY(weir_rule_fits(ctx, 3, "bias", &s.row, "[units]"));
  WEIR_TRY(weir_rule_fits(ctx, 4, "h0", &s.state, "[batch, units]"));
  WEIR_TRY(weir_shape_set(ctx, 0, &s.sequence));
  return weir_shape_set(ctx, 1, &s.state);
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref in[] = {weir_grad_in(ctx, 2), weir_grad_out(ctx, 0),
                   weir_grad_dy(ctx, 0), weir_grad_dy(ctx, 1)};
  weir_named_attr attrs[] = {{"act", *weir_grad_attr(ctx, "act")},
                             {"reverse", *weir_grad_attr(ctx, "reverse")},
                             {NULL, {WEIR_ATTR_NONE, 0, {0}}}};
  weir_ref dz = weir_grad_node(ctx, "rnn_grad", 4, in, attrs);
  weir_grad_recurrence(ctx, dz, dz, 4);
  if (weir_grad_optional(ctx, 4) != WEIR_NO_VALUE)
    weir_grad_add(ctx, 4, weir_grad_next(dz, 1));
  return WEIR_OK;
}

const weir_op_def weir_op_rnn = {
    .name = "rnn",
    .aliases = {"rnn_layer"},
    .summary = "Plain recurrent units over a sequence.",
    .doc =
        "h = act(x_t w + h r + bias). y has h of every step, h that of the "
        "last; reverse begins with the last step of x. PyTorch's weight_ih_l0 "
        "and weight_hh_l0 are w and r transposed, its two biases are added.",
    .source = "Elman, Cognitive Science 14 (1990) 179-211",
    .example = "rnn(x, w, r, bias, h0, act=relu)",
    .inputs = {{"x", "T", "[b, t, d]"},
               {"w", "T", "[d, u]"},
               {"r", "T", "[u, u]"},
               {"bias", "T", "[u]; zeros", .optional = true},
               {"h0", "T", "[b, u]; zeros", .optional = true}},
    .outputs = {{"y", "T", "[b, t, u]"}, {"h", "T", "[b, u]"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"act", WEIR_ATTR_STRING, "tanh", "function of the sum",
               "tanh|relu"},
              {"reverse", WEIR_ATTR_BOOL, "false", "from the last step on"}},
    .refuses = {"ranks other than 3, 2 and 2",
                "weights that do not fit x or each other",
                "a bias or a state of other shapes", "other functions",
                "integers"},
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_recurrence};
