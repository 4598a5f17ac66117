/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/shape_ctx.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const weir_attr *weir_shape_attr(const weir_shape_ctx *ctx, const char *name) {
  const weir_attr_def *defs = ctx->op->attrs;
  for (uint32_t i = 0; i < WEIR_OP_ATTRS && defs[i].name != NULL; i++)
    if (strcmp(defs[i].name, name) == 0) return &ctx->attrs[i];
  return NULL;
}

weir_status weir_shape_bodies(weir_shape_ctx *ctx) {
  if (ctx->vtable->bodies != NULL) return ctx->vtable->bodies(ctx);
  return weir_shape_fail(ctx, WEIR_W1123,
                         "has bodies, which are not known here");
}

weir_status weir_shape_fail(weir_shape_ctx *ctx, weir_error_id id,
                            const char *fmt, ...) {
  char text[sizeof((weir_error *)0)->message];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  return ctx->vtable->fail(ctx, id, text);
}

void weir_shape_hint(weir_shape_ctx *ctx, const char *fmt, ...) {
  char text[sizeof((weir_error *)0)->hint];
  if (ctx->vtable->hint == NULL) return;
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  ctx->vtable->hint(ctx, text);
}

const char *weir_dim_text(weir_shape_ctx *ctx, weir_dim dim) {
  weir_shape one = {.rank = 1, .dims = {dim}};
  char *text = ctx->vtable->text(ctx, &one);
  size_t n = strlen(text); /* without the brackets */
  if (n > 0 && text[n - 1] == ']') text[n - 1] = '\0';
  return text + 1;
}
