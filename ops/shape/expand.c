/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  const weir_shape *x = weir_shape_in(ctx, 0);
  weir_shape want, y;
  WEIR_TRY(weir_rule_shape_of_attr(ctx, "shape", &want));
  if (x->rank > want.rank)
    return weir_shape_fail(
        ctx, WEIR_W2011, "x is %s and does not broadcast to %s",
        weir_shape_text(ctx, x), weir_shape_text(ctx, &want));
  WEIR_TRY(weir_rule_broadcast(ctx, x, &want, &y));
  for (int i = 0, off = want.rank - x->rank; i < x->rank; i++)
    if (weir_dim_is(want.dims[off + i], 1) && weir_dim_known(x->dims[i]) &&
        x->dims[i].value != 1)
      return weir_shape_fail(
          ctx, WEIR_W2011, "x is %s and does not broadcast to %s",
          weir_shape_text(ctx, x), weir_shape_text(ctx, &want));
  return weir_shape_set(ctx, 0, &want);
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_g_add_broadcast(ctx, 0, weir_grad_dy(ctx, 0));
  return WEIR_OK;
}

const weir_op_def weir_op_expand = {
    .name = "expand",
    .aliases = {"broadcast_to"},
    .summary = "x broadcast to a shape.",
    .example = "expand(x, [3, 4])",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES}},
    .attrs = {{"shape", WEIR_ATTR_INTS, NULL, "the shape"}},
    .refuses = {"a shape that x does not broadcast to", "negative dimensions",
                "more than 8 dimensions"},
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_bytes};
