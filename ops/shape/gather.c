/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/fold.h"
#include "ops/grads.h"
#include "ops/rules.h"
#include "ops/shape/slicing.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape y;
  WEIR_TRY(
      weir_rule_gather(ctx, weir_shape_in(ctx, 0), weir_shape_in(ctx, 1), &y));
  WEIR_TRY(weir_shape_set(ctx, 0, &y));
  const weir_tensor *x = weir_rule_ints(ctx, 0), *at = weir_rule_ints(ctx, 1);
  weir_small small;
  if (x == NULL || at == NULL || x->shape.rank != 1 ||
      !weir_small_init(&small, x->dtype, &y))
    return WEIR_OK;
  int64_t n = x->shape.dims[0].value;
  for (int64_t i = 0; i < small.elements; i++) {
    int64_t index = weir_tensor_get_i64(at, i);
    if (index < -n || index >= n) return WEIR_OK; /* fails when it runs */
    if (index < 0) index += n;
    weir_tensor_set_i64(&small.tensor, i, weir_tensor_get_i64(x, index));
  }
  return weir_shape_set_value(ctx, 0, &small.tensor);
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref x = weir_grad_in(ctx, 0);
  weir_named_attr attrs[] = {
      {"shape", weir_attr_shape(weir_grad_shape(ctx, x))},
      {"axis", *weir_grad_attr(ctx, "axis")},
      {NULL, {WEIR_ATTR_NONE, 0, {0}}}};
  weir_ref in[] = {weir_grad_dy(ctx, 0), weir_grad_in(ctx, 1)};
  weir_grad_add(ctx, 0, weir_grad_node(ctx, "gather_grad", 2, in, attrs));
  return WEIR_OK;
}

/* Reads the taken slices, not all of x. */
static void cost(const weir_call *call, weir_cost *out) {
  weir_call part = *call;
  part.in = call->in + 1;
  part.in_count = 1;
  weir_cost_bytes(&part, out);
  out->bytes = weir_cost_mul(out->bytes, 2);
}

const weir_op_def weir_op_gather = {
    .name = "gather",
    .aliases = {"embedding_lookup"},
    .summary = "Slices of x along an axis, chosen by indices.",
    .doc =
        "Negative indices count from the end. The shape is that of x with the "
        "axis replaced by the shape of indices.",
    .example = "gather(x, indices, axis=0)",
    .inputs = {{"x", "T"}, {"indices", "I"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_ALL_TYPES}, {"I", WEIR_I32 | WEIR_I64}},
    .attrs = {{"axis", WEIR_ATTR_INT, "0",
               "axis that the indices choose from"}},
    .refuses = {"an index outside [-n, n) (when it runs)",
                "an axis outside [-rank, rank)", "scalars",
                "a result of more than 8 dimensions", "float indices"},
    .flags = WEIR_OP_MAY_FAIL,
    .shape = shape,
    .grad = grad,
    .cost = cost};
