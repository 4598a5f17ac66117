/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  double keep = weir_rule_float(ctx, "keep");
  if (!(keep > 0 && keep <= 1))
    return weir_shape_fail(ctx, WEIR_W2007,
                           "keep is %g, expected above 0 and at most 1", keep);
  WEIR_TRY(weir_shape_set(ctx, 1, weir_shape_in(ctx, 0)));
  return weir_rule_unary(ctx);
}

/* dy mask / keep: elements that were left out get 0. */
static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref dy = weir_grad_dy(ctx, 0);
  if (!weir_grad_attr(ctx, "training")->b) {
    weir_grad_add(ctx, 0, dy);
    return WEIR_OK;
  }
  if (dy == WEIR_NO_VALUE) return WEIR_OK;
  weir_ref mask = weir_g1a(ctx, "cast", weir_grad_out(ctx, 1), "dtype",
                           weir_attr_dtype(weir_grad_dtype(ctx, dy)));
  mask = weir_g_scale(ctx, mask, 1 / weir_grad_attr(ctx, "keep")->f);
  weir_grad_add(ctx, 0, weir_g2(ctx, "mul", dy, mask));
  return WEIR_OK;
}

const weir_op_def weir_op_dropout = {
    .name = "dropout",
    .summary = "While training, x with random elements set to zero.",
    .doc =
        "Each element stays with probability keep, and is then divided by it, "
        "so that the expected value is x; outside training nothing is done. "
        "mask is 1 where one stayed. "
        "The choice depends on the seeds of graph and node and on the step, "
        "not on threads or devices.",
    .source =
        "Srivastava et al., Journal of Machine Learning Research 15 (2014) "
        "1929-1958; Philox: Salmon et al., SC11 (2011), article 16",
    .example = "dropout(x, keep=0.8)",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}, {"mask", "u8", .optional = true}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"keep", WEIR_ATTR_FLOAT, "0.5", "probability to stay"},
              {"training", WEIR_ATTR_BOOL, "false",
               "set where a graph is made for training"},
              {"seed", WEIR_ATTR_INT, "0",
               "added to the seed of graph and node"}},
    .refuses = {"a keep of 0 or less, or above 1", "integers"},
    .flags = WEIR_OP_RANDOM,
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_math};
