/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/optim/apply.h"
#include "ops/rules.h"

/* The attributes' places. */
enum { RHO, MOMENTUM, EPSILON, CENTERED };

/* Whether an optional slot is there just when it is used. */
static weir_status check_slot(weir_shape_ctx *ctx, uint32_t i, const char *name,
                              bool used, const char *why) {
  if (weir_rule_has(ctx, i) == used) return WEIR_OK;
  return weir_shape_fail(ctx, WEIR_W1108, "%s is %s, but %s is %sgiven", name,
                         used ? "missing" : "not used", why,
                         used ? "" : "not ");
}

static weir_status shape(weir_shape_ctx *ctx) {
  static const char *const names[] = {"var",   "ms",  "grad", "lr",
                                      "scale", "mom", "mg"};
  WEIR_TRY(weir_rule_share(ctx, "rho"));
  WEIR_TRY(weir_rule_share(ctx, "momentum"));
  WEIR_TRY(weir_rule_finite(ctx, "epsilon", true));
  WEIR_TRY(weir_rule_not_negative(ctx, "l2"));
  WEIR_TRY(check_slot(ctx, 5, "mom", weir_rule_float(ctx, "momentum") > 0,
                      "momentum"));
  WEIR_TRY(
      check_slot(ctx, 6, "mg", weir_rule_bool(ctx, "centered"), "centered"));
  return weir_rule_apply(ctx, names, 1u << 3 | 1u << 4);
}

static uint32_t output_count(const weir_attr *attrs, uint32_t in_count) {
  (void)in_count;
  return 2u + (attrs[MOMENTUM].f > 0) + attrs[CENTERED].b;
}

const weir_op_def weir_op_apply_rms_prop = {
    .name = "apply_rms_prop",
    .summary = "One step of RMSProp.",
    .doc =
        "ms = rho ms + (1 - rho) g g; with centered, mg = rho mg + (1 - rho) g "
        "and d = ms - mg mg (at least 0), else d = ms; u = g / (sqrt(d) + "
        "epsilon); with a momentum above 0, mom = momentum mom + u and var = "
        "var - lr mom, else var = var - lr u. g = scale grad + l2 var. The "
        "slots start at 0. mom is given, and is an output, just if momentum is "
        "above 0, mg just if centered: the outputs are var, ms, then mom, then "
        "mg, those left out that are not used.",
    .source =
        "Tieleman and Hinton, COURSERA Neural Networks for Machine Learning, "
        "lecture 6.5 (2012); Graves, arXiv:1308.0850 (centered)",
    .example = "apply_rms_prop(w, s, g, 0.001)",
    .inputs = {{"var", "T"},
               {"ms", "T"},
               {"grad", "T"},
               WEIR_APPLY_LR,
               WEIR_APPLY_SCALE,
               {"mom", "T", .optional = true},
               {"mg", "T", .optional = true}},
    .outputs = {{"var", "T"}, {"ms", "T"}, {"mom", "T"}, {"mg", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {[RHO] = {"rho", WEIR_ATTR_FLOAT, "0.9", "share of ms kept"},
              [MOMENTUM] = {"momentum", WEIR_ATTR_FLOAT, "0.0",
                            "share of mom kept; 0: no mom"},
              [EPSILON] = {"epsilon", WEIR_ATTR_FLOAT, "1e-8",
                           "added to the square root"},
              [CENTERED] = {"centered", WEIR_ATTR_BOOL, "false",
                            "divide by the deviation from the mean mg"},
              WEIR_APPLY_L2},
    .refuses = {WEIR_APPLY_REFUSES, "a rho or momentum outside [0, 1)",
                "an epsilon that is not above 0", "an l2 below 0",
                "mom without a momentum, mg without centered, or the other "
                "way"},
    .flags = WEIR_OP_ROWS | WEIR_OP_MAY_FAIL,
    .output_count = output_count,
    .shape = shape,
    .cost = weir_cost_apply};
