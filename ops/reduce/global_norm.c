/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"
#include "runtime/base/size.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_shape scalar = weir_shape_scalar();
  return weir_shape_set(ctx, 0, &scalar);
}

static void cost(const weir_call *call, weir_cost *out) {
  weir_cost_bytes(call, out);
  for (uint32_t i = 0; i < call->in_count; i++) {
    int64_t sum, flops = weir_cost_mul(call->in[i].elements, 2);
    out->flops =
        weir_dim_add_checked(out->flops, flops, &sum) ? sum : INT64_MAX;
  }
}

/* dx = x dy / norm, and 0 where the norm is. */
static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref norm = weir_grad_out(ctx, 0), zero = weir_g_number(ctx, norm, 0);
  weir_ref flat = weir_g2(ctx, "equal", norm, zero);
  weir_ref share = weir_g2(ctx, "div", weir_grad_dy(ctx, 0), norm);
  weir_ref factor = weir_g3(ctx, "where", flat, zero, share);
  for (uint32_t i = 0; i < weir_grad_in_count(ctx); i++)
    if (weir_grad_wanted(ctx, i))
      weir_grad_add(ctx, i, weir_g2(ctx, "mul", weir_grad_in(ctx, i), factor));
  return WEIR_OK;
}

const weir_op_def weir_op_global_norm = {
    .name = "global_norm",
    .aliases = {"l2_norm"},
    .summary = "Length of all inputs taken as one vector.",
    .doc =
        "The square root of the sum of the squares of all elements. Sums are "
        "f64, in an order that follows from the shapes alone. Clipping by norm "
        "scales gradients by min(1, limit / norm).",
    .source = "Pascanu, Mikolov and Bengio, ICML 2013",
    .example = "global_norm(a, b, c)",
    .inputs = {{"xs", "T", NULL, .variadic = true}},
    .outputs = {{"norm", "T", "[]"}},
    .types = {{"T", WEIR_FLOATS}},
    .refuses = {"inputs of two dtypes", "integers"},
    .shape = shape,
    .grad = grad,
    .cost = cost};
