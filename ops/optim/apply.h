/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_APPLY_H_
#define OPS_APPLY_H_

#include "ops/shape_ctx.h"

/* The common part of the optimisers' ops.
 *
 * An op `apply_*` is one step of one rule for one variable: it takes the
 * variable, its slots, the gradient, the learning rate and, for some, the
 * number of the step, and gives the new variable and the new slots. It assigns
 * nothing. The trailing input `scale`, which may be left out, is a number that
 * multiplies the gradient (clipping by norm); l2 decay is added after that:
 *
 *   g = scale grad + l2 var
 *
 * Kernels find inputs by these orders:
 *   var, slots, grad, lr, [step,] [scale,] [further slots] -> var, slots */

/* All inputs have the shape of input 0, but those whose bits are set in
 * |scalars|, which are numbers (rank 0); an input that is left out is none.
 * |names| has one name for each input. Outputs have the shape of input 0.
 * Errors: W2004, W2010. */
weir_status weir_rule_apply(weir_shape_ctx *ctx, const char *const *names,
                            unsigned scalars);
/* Fails with W2007 unless the attribute |name| (FLOAT) is in [0, 1), as a
 * share that is kept of an average is. */
weir_status weir_rule_share(weir_shape_ctx *ctx, const char *name);
/* Fails with W2007 unless the attribute |name| (FLOAT) is finite and at least
 * 0. */
weir_status weir_rule_not_negative(weir_shape_ctx *ctx, const char *name);

/* Shape rule of Adam and its kin: two slots, a step, attributes beta1, beta2,
 * epsilon and |decay|, which is not negative. Errors: W2004, W2007, W2010. */
weir_status weir_rule_adam(weir_shape_ctx *ctx, const char *decay);

/* Bytes, and about ten operations for each element. */
void weir_cost_apply(const weir_call *call, weir_cost *out);

/* Ports and attributes that all or most rules have. */
#define WEIR_APPLY_LR \
  { "lr", "T", "[]" }
#define WEIR_APPLY_STEP \
  { "step", "i64", "[]" }
#define WEIR_APPLY_SCALE \
  { "scale", "T", "[]", .optional = true }
#define WEIR_APPLY_L2                            \
  {                                              \
    "l2", WEIR_ATTR_FLOAT, "0.0",                \
        "l2 var is added to the gradient after " \
        "scaling"                                \
  }
/* The refusals of all of them. */
#define WEIR_APPLY_REFUSES                                      \
  "slots or a gradient of another shape than the variable",     \
      "a learning rate or scale that is not one number",        \
      "a learning rate that is NaN, infinite or below 0 (when " \
      "it runs)",                                               \
      "integers"

/* Adam and its kin: ports, types and cost; attributes and refusals, to which
 * each adds those of its decay. */
#define WEIR_ADAM_FIELDS                                                     \
  .inputs = {{"var", "T"},  {"m", "T"},      {"v", "T"},      {"grad", "T"}, \
             WEIR_APPLY_LR, WEIR_APPLY_STEP, WEIR_APPLY_SCALE},              \
  .outputs = {{"var", "T"}, {"m", "T"}, {"v", "T"}},                         \
  .types = {{"T", WEIR_FLOATS}}, .flags = WEIR_OP_ROWS | WEIR_OP_MAY_FAIL,   \
  .cost = weir_cost_apply
#define WEIR_ADAM_ATTRS                                                 \
  {"beta1", WEIR_ATTR_FLOAT, "0.9", "share of m kept"},                 \
      {"beta2", WEIR_ATTR_FLOAT, "0.999", "share of v kept"}, {         \
    "epsilon", WEIR_ATTR_FLOAT, "1e-8", "added to the square root of V" \
  }
#define WEIR_ADAM_REFUSES(decay)               \
  WEIR_APPLY_REFUSES, "a beta outside [0, 1)", \
      "an epsilon that is not above 0", decay, "a step below 1 (when it runs)"

#endif
