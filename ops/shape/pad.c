/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/shape/slicing.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape y;
  WEIR_TRY(weir_rule_pad(ctx, weir_shape_in(ctx, 0), &y));
  return weir_shape_set(ctx, 0, &y);
}

/* The part between the pads. */
static weir_ref inner(weir_grad_ctx *ctx, weir_ref dy, const weir_attr *pads) {
  uint32_t rank = pads->count / 2;
  weir_dim start[WEIR_MAX_RANK], stop[WEIR_MAX_RANK];
  for (uint32_t i = 0; i < rank; i++) {
    int64_t after = pads->dims[rank + i].value;
    start[i] = pads->dims[i];
    stop[i] = weir_dim_of(after == 0 ? INT64_MAX : -after);
  }
  weir_named_attr attrs[] = {{"start", weir_attr_dims(rank, start)},
                             {"stop", weir_attr_dims(rank, stop)},
                             {NULL, {WEIR_ATTR_NONE, 0, {0}}}};
  return weir_grad_node(ctx, "slice", 1, &dy, attrs);
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0), dy = weir_grad_dy(ctx, 0);
  const weir_attr *pads = weir_grad_attr(ctx, "pads");
  const weir_attr *mode = weir_grad_attr(ctx, "mode");
  if (weir_sv_is(mode->s, "constant")) {
    weir_grad_add(ctx, 0, inner(ctx, dy, pads));
    return WEIR_OK;
  }
  weir_named_attr attrs[] = {
      {"shape", weir_attr_shape(weir_grad_shape(ctx, x))},
      {"pads", *pads},
      {"mode", *mode},
      {NULL, {WEIR_ATTR_NONE, 0, {0}}}};
  weir_grad_add(ctx, 0, weir_grad_node(ctx, "pad_grad", 1, &dy, attrs));
  return WEIR_OK;
}

const weir_op_def weir_op_pad = {
    .name = "pad",
    .summary = "x with elements put before and after each dimension.",
    .example = "pad(x, pads=[1, 1, 1, 1])",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES}},
    .attrs = {{"pads", WEIR_ATTR_INTS, NULL,
               "how many before each dimension, then how many after each"},
              {"value", WEIR_ATTR_NUMBER, "0", "the padding of mode constant"},
              {"mode", WEIR_ATTR_STRING, "constant",
               "constant: value; edge: the nearest element; reflect: mirrored "
               "at the edge element",
               "constant|edge|reflect"}},
    .refuses = {"a list of another length than twice the rank", "negative pads",
                "reflect by as much as the dimension or more",
                "edge of an empty dimension"},
    .shape = shape,
    .grad = grad,
    .cost = weir_cost_bytes};
