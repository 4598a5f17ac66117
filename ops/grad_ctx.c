/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/grad_ctx.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const weir_attr *weir_grad_attr(const weir_grad_ctx *ctx, const char *name) {
  const weir_attr_def *defs = ctx->op->attrs;
  for (uint32_t i = 0; i < WEIR_OP_ATTRS && defs[i].name != NULL; i++)
    if (strcmp(defs[i].name, name) == 0) return &ctx->attrs[i];
  return NULL;
}

weir_status weir_grad_fail(weir_grad_ctx *ctx, weir_error_id id,
                           const char *fmt, ...) {
  char text[sizeof((weir_error *)0)->message];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  return ctx->vtable->fail(ctx, id, text);
}

weir_ref weir_grad_unbroadcast(weir_grad_ctx *ctx, weir_ref g, weir_ref like) {
  if (g == WEIR_NO_VALUE || like == WEIR_NO_VALUE) return WEIR_NO_VALUE;
  weir_shape from = *weir_grad_shape(ctx, g);
  weir_shape to = *weir_grad_shape(ctx, like);
  if (from.rank < 0 || to.rank < 0) {
    weir_grad_fail(ctx, WEIR_W2008, "the ranks must be known");
    return WEIR_NO_VALUE;
  }
  if (weir_shape_equal(&from, &to)) return g;
  weir_dim axes[WEIR_MAX_RANK];
  uint32_t count = 0;
  int extra = from.rank - to.rank;
  for (int i = 0; i < from.rank; i++) {
    bool stretched = i >= extra && weir_dim_is(to.dims[i - extra], 1) &&
                     !weir_dim_is(from.dims[i], 1);
    if (i < extra || stretched) axes[count++] = weir_dim_of(i);
  }
  weir_named_attr sum[] = {
      {"axis", {.kind = WEIR_ATTR_INTS, .count = count, .dims = axes}},
      {"keepdims", {.kind = WEIR_ATTR_BOOL, .b = extra == 0}},
      {NULL, {.kind = WEIR_ATTR_NONE}}};
  if (count > 0) g = weir_grad_node(ctx, "reduce_sum", 1, &g, sum);
  if (extra == 0 || g == WEIR_NO_VALUE) return g;
  weir_named_attr shape[] = {
      {"shape",
       {.kind = WEIR_ATTR_INTS, .count = (uint32_t)to.rank, .dims = to.dims}},
      {NULL, {.kind = WEIR_ATTR_NONE}}};
  return weir_grad_node(ctx, "reshape", 1, &g, shape);
}
