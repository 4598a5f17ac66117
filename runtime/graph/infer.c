/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/graph/builder.h"
#include "runtime/graph/control.h"
#include "runtime/graph/graph_internal.h"
#include "runtime/graph/names.h"

/* The view that shape rules have of a graph: the context of ops/shape_ctx.h.
 * The node is not in the graph yet; all it refers to is.
 *
 * A value that is known when the graph is made (|known|) is kept with it, so
 * that a shape may depend on it: reshape(x, shape(y)). Only small ones are, as
 * larger ones are data and no shapes. */

enum { WEIR_KNOWN_ELEMENTS = 4096 };

static const weir_infer *self_of(const weir_shape_ctx *ctx) {
  return (const weir_infer *)ctx; /* base is its first member */
}

static const weir_value *in_value(const weir_infer *ctx, uint32_t i) {
  if (i >= ctx->spec->input_count) return NULL;
  weir_value_id id = ctx->spec->inputs[i];
  if (id == WEIR_NO_VALUE) return NULL;
  return &ctx->builder->graph->values.items[id];
}

static weir_dtype in_dtype(const weir_shape_ctx *ctx, uint32_t i) {
  const weir_value *v = in_value(self_of(ctx), i);
  return v != NULL ? v->dtype : WEIR_DTYPE_NONE;
}

static const weir_shape *in_shape(const weir_shape_ctx *ctx, uint32_t i) {
  static const weir_shape kUnknown = {.rank = WEIR_RANK_UNKNOWN};
  const weir_value *v = in_value(self_of(ctx), i);
  return v != NULL ? v->shape : &kUnknown;
}

static const weir_tensor *in_known(const weir_shape_ctx *ctx, uint32_t i) {
  const weir_value *v = in_value(self_of(ctx), i);
  return v != NULL ? v->known : NULL;
}

static weir_status fail(weir_shape_ctx *base, weir_error_id id,
                        const char *text) {
  weir_infer *ctx = weir_infer_of(base);
  weir_error *err = &ctx->diag->error;
  weir_status s =
      weir_fail(err, id, &ctx->spec->mark, "%s: %s", base->op->name, text);
  weir_error_set_node(err, ctx->spec->name.data, ctx->spec->name.size);
  return s;
}

static void hint(weir_shape_ctx *base, const char *text) {
  weir_hint(&weir_infer_of(base)->diag->error, "%s", text);
}

/* An error of another room, reported as the node's. */
static weir_status retell(weir_infer *ctx, weir_status s,
                          const weir_error *why) {
  weir_error *err = &ctx->diag->error;
  weir_fail(err, WEIR_W9001, &ctx->spec->mark, "%s: %s", ctx->info->op->name,
            why->message);
  memcpy(err->id, why->id, sizeof err->id);
  err->code = s;
  weir_error_set_node(err, ctx->spec->name.data, ctx->spec->name.size);
  return s;
}

static weir_status no_memory(weir_infer *ctx, size_t bytes) {
  return weir_fail_memory(&ctx->diag->error, bytes);
}

/* An input's very shape was checked already and is interned. */
static const weir_shape *same_as_input(const weir_infer *ctx,
                                       const weir_shape *shape, size_t bytes) {
  for (uint32_t i = 0; i < ctx->spec->input_count && i < 4; i++) {
    const weir_value *v = in_value(ctx, i);
    if (v != NULL && weir_dtype_size(v->dtype) >= bytes &&
        (v->shape == shape || weir_shape_same(v->shape, shape)))
      return v->shape;
  }
  return NULL;
}

static weir_status set(weir_shape_ctx *base, uint32_t i,
                       const weir_shape *shape) {
  weir_infer *ctx = weir_infer_of(base);
  if (i >= base->out_count)
    return weir_shape_fail(base, WEIR_W9001,
                           "sets output %" PRIu32 " of %" PRIu32, i,
                           base->out_count);
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

static void set_dtype(weir_shape_ctx *base, uint32_t i, weir_dtype dtype) {
  if (i < base->out_count) weir_infer_of(base)->outs[i].dtype = dtype;
}

/* The tensor is one of the node's own literals: no need for a copy. */
static bool is_own_literal(const weir_infer *ctx, const weir_tensor *tensor) {
  for (uint32_t i = 0; i < ctx->info->attr_count; i++)
    if (ctx->base.attrs[i].kind == WEIR_ATTR_TENSOR &&
        ctx->base.attrs[i].tensor == tensor)
      return true;
  return false;
}

static weir_status set_value(weir_shape_ctx *base, uint32_t i,
                             const weir_tensor *tensor) {
  weir_infer *ctx = weir_infer_of(base);
  if (i >= base->out_count) return WEIR_OK;
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

static weir_dim new_dim(weir_shape_ctx *base) {
  weir_infer *ctx = weir_infer_of(base);
  uint32_t symbol = weir_graph_builder_new_symbol(ctx->builder);
  if (symbol == 0)
    ctx->memory_failed = true; /* reported when the rule has returned */
  return (weir_dim){0, symbol, 0};
}

static const char *symbol_name(const void *self, uint32_t symbol) {
  const weir_graph *graph = self;
  return symbol < graph->symbol_count ? graph->symbols[symbol] : "?";
}

static char *text_of(weir_shape_ctx *base, const weir_shape *shape) {
  weir_infer *ctx = weir_infer_of(base);
  char *text = ctx->texts[ctx->text_at++ % WEIR_SHAPE_TEXTS];
  return weir_shape_print(shape, symbol_name, &ctx->builder->graph->g, text,
                          WEIR_SHAPE_TEXT_BYTES);
}

const weir_shape_vtable weir_infer_vtable = {.in_dtype = in_dtype,
                                             .in_shape = in_shape,
                                             .in_value = in_known,
                                             .set = set,
                                             .set_dtype = set_dtype,
                                             .set_value = set_value,
                                             .new_dim = new_dim,
                                             .bodies = weir_infer_bodies,
                                             .fail = fail,
                                             .hint = hint,
                                             .text = text_of};
