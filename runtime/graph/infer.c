/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/graph/internal.h"

/* What shape rules see: the weir_shape_ctx functions of ops/op.h. */

enum { WEIR_KNOWN_ELEMENTS = 4096 };

static const weir_value *in_value(const weir_shape_ctx *ctx, uint32_t i) {
  if (i >= ctx->spec->input_count) return NULL;
  weir_value_id id = ctx->spec->inputs[i];
  if (id == WEIR_NO_VALUE) return NULL;
  return &ctx->builder->graph->values.items[id];
}

uint32_t weir_shape_in_count(const weir_shape_ctx *ctx) {
  return ctx->spec->input_count;
}

uint32_t weir_shape_out_count(const weir_shape_ctx *ctx) {
  return ctx->out_count;
}

weir_dtype weir_shape_in_dtype(const weir_shape_ctx *ctx, uint32_t i) {
  const weir_value *v = in_value(ctx, i);
  return v != NULL ? v->dtype : WEIR_DTYPE_NONE;
}

const weir_shape *weir_shape_in(const weir_shape_ctx *ctx, uint32_t i) {
  static const weir_shape kUnknown = {.rank = WEIR_RANK_UNKNOWN};
  const weir_value *v = in_value(ctx, i);
  return v != NULL ? v->shape : &kUnknown;
}

const weir_tensor *weir_shape_in_value(const weir_shape_ctx *ctx, uint32_t i) {
  const weir_value *v = in_value(ctx, i);
  return v != NULL ? v->known : NULL;
}

const weir_attr *weir_shape_attr(const weir_shape_ctx *ctx, const char *name) {
  for (uint32_t i = 0; i < ctx->info->attr_count; i++)
    if (strcmp(ctx->info->op->attrs[i].name, name) == 0) return &ctx->attrs[i];
  return NULL;
}

weir_status weir_shape_fail(weir_shape_ctx *ctx, weir_error_id id,
                            const char *fmt, ...) {
  char text[sizeof ctx->diag->error.message];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  weir_error *err = &ctx->diag->error;
  weir_status s =
      weir_fail(err, id, &ctx->spec->mark, "%s: %s", ctx->info->op->name, text);
  weir_error_set_node(err, ctx->spec->name.data, ctx->spec->name.size);
  return s;
}

void weir_shape_hint(weir_shape_ctx *ctx, const char *fmt, ...) {
  char text[sizeof ctx->diag->error.hint];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  weir_hint(&ctx->diag->error, "%s", text);
}

/* An error of another room, told as the node's. */
static weir_status retell(weir_shape_ctx *ctx, weir_status s,
                          const weir_error *why) {
  weir_error *err = &ctx->diag->error;
  weir_fail(err, WEIR_W9001, &ctx->spec->mark, "%s: %s", ctx->info->op->name,
            why->message);
  memcpy(err->id, why->id, sizeof err->id);
  err->code = s;
  weir_error_set_node(err, ctx->spec->name.data, ctx->spec->name.size);
  return s;
}

static weir_status no_memory(weir_shape_ctx *ctx, size_t bytes) {
  return weir_fail_memory(&ctx->diag->error, bytes);
}

/* An input's very shape was checked already and is interned. */
static const weir_shape *same_as_input(const weir_shape_ctx *ctx,
                                       const weir_shape *shape, size_t bytes) {
  for (uint32_t i = 0; i < ctx->spec->input_count && i < 4; i++) {
    const weir_value *v = in_value(ctx, i);
    if (v != NULL && weir_dtype_size(v->dtype) >= bytes &&
        (v->shape == shape || weir_shape_same(v->shape, shape)))
      return v->shape;
  }
  return NULL;
}

weir_status weir_shape_set(weir_shape_ctx *ctx, uint32_t i,
                           const weir_shape *shape) {
  if (i >= ctx->out_count)
    return weir_shape_fail(ctx, WEIR_W9001,
                           "sets output %" PRIu32 " of %" PRIu32, i,
                           ctx->out_count);
  weir_infer_out *out = &ctx->outs[i];
  size_t bytes = weir_dtype_size(out->dtype);
  out->shape = same_as_input(ctx, shape, bytes > 0 ? bytes : 8);
  if (out->shape != NULL) return WEIR_OK;
  weir_error why = WEIR_ERROR_INIT;
  weir_status s = weir_shape_check(shape, out->dtype, &why);
  if (s != WEIR_OK) return retell(ctx, s, &why);
  out->shape = weir_shapes_intern(ctx->builder, shape);
  return out->shape != NULL ? WEIR_OK : no_memory(ctx, sizeof *shape);
}

void weir_shape_set_dtype(weir_shape_ctx *ctx, uint32_t i, weir_dtype dtype) {
  if (i < ctx->out_count) ctx->outs[i].dtype = dtype;
}

/* The tensor is one of the node's own literals: no need for a copy. */
static bool is_own_literal(const weir_shape_ctx *ctx,
                           const weir_tensor *tensor) {
  for (uint32_t i = 0; i < ctx->info->attr_count; i++)
    if (ctx->attrs[i].kind == WEIR_ATTR_TENSOR &&
        ctx->attrs[i].tensor == tensor)
      return true;
  return false;
}

weir_status weir_shape_set_value(weir_shape_ctx *ctx, uint32_t i,
                                 const weir_tensor *tensor) {
  if (i >= ctx->out_count) return WEIR_OK;
  weir_infer_out *out = &ctx->outs[i];
  if (is_own_literal(ctx, tensor)) { /* the graph holds it as an attribute */
    out->known = (weir_tensor *)(uintptr_t)tensor;
    return WEIR_OK;
  }
  if (weir_shape_elements(&tensor->shape) > WEIR_KNOWN_ELEMENTS) return WEIR_OK;
  weir_graph_builder *b = ctx->builder;
  weir_tensor *copy = NULL;
  weir_status s = weir_tensor_copy(b->alloc, tensor, &copy, &ctx->diag->error);
  if (s != WEIR_OK) return s;
  if (!weir_vec_push(b->alloc, &b->graph->tensors, copy)) {
    weir_tensor_unref(copy);
    return no_memory(ctx, sizeof copy);
  }
  out->known = copy;
  return WEIR_OK;
}

weir_dim weir_shape_new_dim(weir_shape_ctx *ctx) {
  uint32_t symbol = weir_graph_builder_new_symbol(ctx->builder);
  if (symbol == 0)
    ctx->memory_failed = true; /* reported when the rule has returned */
  return (weir_dim){0, symbol, 0};
}

bool weir_shape_unify(weir_shape_ctx *ctx, weir_dim a, weir_dim b,
                      weir_dim *out) {
  (void)ctx;
  *out = weir_dim_known(b) && !weir_dim_known(a) ? b : a;
  if (out->name == 0) out->name = a.name != 0 ? a.name : b.name;
  if (a.symbol == b.symbol) return a.value == b.value;
  return true;
}

static const char *symbol_name(const void *self, uint32_t symbol) {
  const weir_graph *graph = self;
  return symbol < graph->symbol_count ? graph->symbols[symbol] : "?";
}

const char *weir_shape_text(weir_shape_ctx *ctx, const weir_shape *shape) {
  char *text = ctx->texts[ctx->text_at++ % WEIR_SHAPE_TEXTS];
  return weir_shape_print(shape, symbol_name, &ctx->builder->graph->g, text,
                          WEIR_SHAPE_TEXT_BYTES);
}

const char *weir_dim_text(weir_shape_ctx *ctx, weir_dim dim) {
  weir_shape one = {.rank = 1, .dims = {dim}};
  char *text = (char *)(uintptr_t)weir_shape_text(ctx, &one);
  size_t n = strlen(text); /* without the brackets */
  if (n > 0 && text[n - 1] == ']') text[n - 1] = '\0';
  return text + 1;
}
