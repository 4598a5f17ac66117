/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/grads.h"
#include "ops/recurrent/recurrent.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_recurrence s;
  WEIR_TRY(weir_rule_recurrence(ctx, 3, &s));
  WEIR_TRY(weir_rule_fits(ctx, 3, "bias", &s.row, "[3 * units]"));
  WEIR_TRY(weir_rule_fits(ctx, 4, "rbias", &s.row, "[3 * units]"));
  WEIR_TRY(weir_rule_fits(ctx, 5, "h0", &s.state, "[batch, units]"));
  WEIR_TRY(weir_shape_set(ctx, 0, &s.sequence));
  WEIR_TRY(weir_shape_set(ctx, 1, &s.state));
  WEIR_TRY(weir_shape_set(ctx, 2, &s.gates));
  return weir_shape_set(ctx, 3, &s.sequence);
}

static weir_status grad(weir_grad_ctx *ctx) {
  WEIR_TRY(weir_grad_not_through(ctx, 2));
  WEIR_TRY(weir_grad_not_through(ctx, 3));
  weir_ref in[] = {weir_grad_in(ctx, 2),       weir_grad_out(ctx, 2),
                   weir_grad_out(ctx, 3),      weir_grad_out(ctx, 0),
                   weir_grad_optional(ctx, 5), weir_grad_dy(ctx, 0),
                   weir_grad_dy(ctx, 1)};
  weir_named_attr attrs[] = {{"reverse", *weir_grad_attr(ctx, "reverse")},
                             {NULL, {WEIR_ATTR_NONE, 0, {0}}}};
  weir_ref dz = weir_grad_node(ctx, "gru_grad", 7, in, attrs);
  weir_ref dq = weir_grad_next(dz, 1);
  weir_grad_recurrence(ctx, dz, dq, 5);
  if (weir_grad_in_count(ctx) > 4 && weir_grad_wanted(ctx, 4))
    weir_grad_add(ctx, 4, weir_g_sum(ctx, dq, 2, (int[]){0, 1}, false));
  if (weir_grad_optional(ctx, 5) != WEIR_NO_VALUE)
    weir_grad_add(ctx, 5, weir_grad_next(dz, 2));
  return WEIR_OK;
}

const weir_op_def weir_op_gru = {
    .name = "gru",
    .aliases = {"gru_layer"},
    .summary = "Gated recurrent units over a sequence.",
    .doc =
        "z = x_t w + bias and q = h r + rbias hold three gates side by side, "
        "in the order r, z, n: r and z are sigmoid(z + q), n = tanh(z_n + r "
        "q_n), h = (1 - z) n + z h. y has h of every step, h that of the "
        "last; reverse begins with the last step of x. This is PyTorch's form, "
        "whose weights are w and r transposed, and ONNX's with "
        "linear_before_reset = 1, whose order is z, r, n.",
    .source = "Cho et al., arXiv:1406.1078",
    .example = "gru(x, w, r, bias, rbias, h0)",
    .inputs = {{"x", "T", "[b, t, d]"},
               {"w", "T", "[d, 3 u]"},
               {"r", "T", "[u, 3 u]"},
               {"bias", "T", "[3 u]; zeros", .optional = true},
               {"rbias", "T", "[3 u]; zeros", .optional = true},
               {"h0", "T", "[b, u]; zeros", .optional = true}},
    .outputs = {{"y", "T", "[b, t, u]"},
                {"h", "T", "[b, u]"},
                {"gates", "T", "[b, t, 3 u], after sigmoid and tanh",
                 .optional = true},
                {"inner", "T", "[b, t, u], q_n of every step",
                 .optional = true}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"reverse", WEIR_ATTR_BOOL, "false", "from the last step on"}},
    .refuses = {"ranks other than 3, 2 and 2",
                "weights that do not fit x or each other",
                "biases or a state of other shapes", "integers"},
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_recurrence};
