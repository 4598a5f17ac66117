/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/grad/grad_ctx.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "runtime/graph/attrs.h"

static weir_status make_tables(weir_grad_ctx *ctx, const weir_graph *from,
                               weir_error *err) {
  uint32_t values = from->value_count;
  ctx->dys = weir_alloc_array(from->alloc, values, sizeof *ctx->dys);
  ctx->depends = weir_alloc_array(from->alloc, values, sizeof *ctx->depends);
  bool ok = ctx->dys != NULL && ctx->depends != NULL;
  for (uint32_t i = 0; ok && i < values; i++) ctx->dys[i] = WEIR_NO_VALUE;
  size_t count = weir_registry_op_count(from->registry);
  for (uint32_t i = 0; ok && i < count; i++) {
    const weir_op_def *op = weir_registry_op_at(from->registry, i);
    ok = weir_map_put(&ctx->ops, weir_sv_from(op->name), i, NULL);
  }
  return ok ? WEIR_OK : weir_fail_memory(err, values * sizeof *ctx->dys);
}

weir_status weir_grad_ctx_begin(weir_grad_ctx *ctx, const weir_graph *from,
                                weir_error *err) {
  *ctx = (weir_grad_ctx){.err = err};
  weir_map_init(&ctx->ops, from->alloc);
  WEIR_TRY(weir_pass_begin(&ctx->pass, from, err));
  return make_tables(ctx, from, err);
}

weir_status weir_grad_ctx_begin_body(weir_grad_ctx *ctx, const weir_graph *from,
                                     weir_graph_builder *outer,
                                     weir_error *err) {
  *ctx = (weir_grad_ctx){.err = err};
  weir_map_init(&ctx->ops, from->alloc);
  WEIR_TRY(weir_pass_begin_body(&ctx->pass, from, outer, err));
  return make_tables(ctx, from, err);
}

weir_status weir_grad_ctx_end(weir_grad_ctx *ctx, weir_status status,
                              weir_graph **out_graph, weir_error *err) {
  const weir_allocator *alloc = ctx->pass.alloc;
  weir_free(alloc, ctx->dys);
  weir_free(alloc, ctx->depends);
  weir_map_release(&ctx->ops);
  return weir_pass_end(&ctx->pass, status, out_graph, err);
}

/* Keeps the first failure. */
static weir_ref failed(weir_grad_ctx *ctx, weir_status status) {
  if (ctx->status == WEIR_OK) ctx->status = status;
  return WEIR_NO_VALUE;
}

static const weir_value *value_of(const weir_grad_ctx *ctx, weir_ref value) {
  return &weir_graph_builder_graph(ctx->pass.builder)->values[value];
}

/* ---- What rules ask */

uint32_t weir_grad_in_count(const weir_grad_ctx *ctx) {
  return ctx->node->input_count;
}

weir_ref weir_grad_in(const weir_grad_ctx *ctx, uint32_t i) {
  return i < ctx->node->input_count ? ctx->node->inputs[i] : WEIR_NO_VALUE;
}

weir_ref weir_grad_out(const weir_grad_ctx *ctx, uint32_t i) {
  return ctx->node->first_output + i;
}

weir_ref weir_grad_dy(const weir_grad_ctx *ctx, uint32_t i) {
  return ctx->dys[ctx->node->first_output + i];
}

bool weir_grad_wanted(const weir_grad_ctx *ctx, uint32_t i) {
  weir_ref in = weir_grad_in(ctx, i);
  return in != WEIR_NO_VALUE && ctx->depends[in];
}

const weir_attr *weir_grad_attr(const weir_grad_ctx *ctx, const char *name) {
  int i = weir_op_attr_index(ctx->node->op, weir_sv_from(name));
  return &ctx->node->attrs[i];
}

const weir_shape *weir_grad_shape(const weir_grad_ctx *ctx, weir_ref value) {
  static const weir_shape kUnknown = {.rank = WEIR_RANK_UNKNOWN};
  return value == WEIR_NO_VALUE ? &kUnknown : value_of(ctx, value)->shape;
}

weir_dtype weir_grad_dtype(const weir_grad_ctx *ctx, weir_ref value) {
  return value == WEIR_NO_VALUE ? WEIR_F32 : value_of(ctx, value)->dtype;
}

/* ---- What rules add */

/* grad/NODE/WHAT, numbered so that it is unique; in the builder's arena. */
weir_sv weir_grad_name(weir_grad_ctx *ctx, weir_graph_builder *builder,
                       const char *what) {
  char text[400];
  weir_sv name;
  do {
    int size =
        snprintf(text, sizeof text, "grad/%.*s/%s_%u",
                 (int)(ctx->node->name.size < 256 ? ctx->node->name.size : 256),
                 ctx->node->name.data, what, ctx->added++);
    name = (weir_sv){text, (size_t)size};
  } while (weir_graph_builder_has_name(builder, name));
  weir_arena *arena = weir_graph_builder_arena(builder);
  name.data = weir_arena_string(arena, text, name.size);
  return name;
}

const weir_op_def *weir_grad_op(const weir_grad_ctx *ctx, const char *name) {
  const weir_registry *registry = ctx->pass.from->registry;
  uint32_t index = weir_map_get(&ctx->ops, weir_sv_from(name));
  return index == WEIR_MAP_NONE ? NULL : weir_registry_op_at(registry, index);
}

weir_ref weir_grad_node_at(weir_grad_ctx *ctx, weir_graph_builder *builder,
                           const char *op_name, uint32_t in_count,
                           const weir_ref *in, const weir_named_attr *attrs) {
  if (ctx->status != WEIR_OK) return WEIR_NO_VALUE;
  if (ctx->max_nodes > 0 &&
      weir_graph_builder_graph(builder)->node_count >= ctx->max_nodes)
    return failed(ctx, weir_fail(ctx->err, WEIR_W1014, &ctx->node->mark,
                                 "gradients make more than %" PRIu64 " nodes",
                                 ctx->max_nodes));
  weir_attr filled[WEIR_OP_ATTRS];
  const weir_op_def *op = weir_grad_op(ctx, op_name);
  if (op == NULL || !weir_attrs_by_name(op, attrs, filled))
    return failed(ctx, weir_fail(ctx->err, WEIR_W9001, &ctx->node->mark,
                                 "the gradient of %s uses %s wrongly",
                                 ctx->node->op->name, op_name));
  weir_node_spec spec = {.name = weir_grad_name(ctx, builder, op_name),
                         .op = op,
                         .attrs = filled,
                         .inputs = in,
                         .input_count = in_count,
                         .device = ctx->node->device,
                         .mark = ctx->node->mark};
  if (spec.name.data == NULL)
    return failed(ctx, weir_fail_memory(ctx->err, spec.name.size));
  weir_node_id node = UINT32_MAX;
  weir_status s = weir_graph_builder_add(builder, &spec, &node, NULL);
  if (s == WEIR_OK) return weir_graph_builder_output(builder, node, 0);
  *ctx->err = builder->diag.error;
  return failed(ctx, s);
}

weir_ref weir_grad_node(weir_grad_ctx *ctx, const char *op_name,
                        uint32_t in_count, const weir_ref *in,
                        const weir_named_attr *attrs) {
  return weir_grad_node_at(ctx, ctx->pass.builder, op_name, in_count, in,
                           attrs);
}

weir_ref weir_grad_scalar(weir_grad_ctx *ctx, weir_dtype dtype, double value) {
  weir_tensor *tensor = NULL;
  weir_shape scalar = weir_shape_of(0, NULL);
  if (ctx->status != WEIR_OK) return WEIR_NO_VALUE;
  weir_status s = weir_tensor_create_shaped(ctx->pass.alloc, dtype, &scalar,
                                            &tensor, ctx->err);
  if (s != WEIR_OK) return failed(ctx, s);
  weir_tensor_set_f64(tensor, 0, value);
  weir_named_attr attrs[] = {
      {"value", {.kind = WEIR_ATTR_TENSOR, .tensor = tensor}},
      {"dtype", {.kind = WEIR_ATTR_DTYPE, .dtype = dtype}},
      {NULL, {.kind = WEIR_ATTR_NONE}}};
  weir_ref made = weir_grad_node(ctx, "const", 0, NULL, attrs);
  weir_tensor_unref(tensor);
  return made;
}

weir_ref weir_grad_unbroadcast(weir_grad_ctx *ctx, weir_ref g, weir_ref like) {
  if (g == WEIR_NO_VALUE || like == WEIR_NO_VALUE) return WEIR_NO_VALUE;
  weir_shape from = *weir_grad_shape(ctx, g);
  weir_shape to = *weir_grad_shape(ctx, like);
  if (from.rank < 0 || to.rank < 0)
    return failed(ctx, weir_fail(ctx->err, WEIR_W2008, &ctx->node->mark,
                                 "the gradient of %s needs known ranks",
                                 ctx->node->op->name));
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

weir_status weir_grad_fail(weir_grad_ctx *ctx, weir_error_id id,
                           const char *fmt, ...) {
  char text[sizeof ctx->err->message];
  const weir_node *node = ctx->node;
  if (ctx->status != WEIR_OK) return ctx->status;
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  ctx->status = weir_fail(ctx->err, id, &node->mark, "gradient of %s: %s",
                          node->op->name, text);
  weir_error_set_node(ctx->err, node->name.data, node->name.size);
  return ctx->status;
}

void weir_grad_add(weir_grad_ctx *ctx, uint32_t i, weir_ref g) {
  if (g == WEIR_NO_VALUE || !weir_grad_wanted(ctx, i)) return;
  weir_ref *dy = &ctx->dys[ctx->node->inputs[i]];
  if (*dy == WEIR_NO_VALUE)
    *dy = g;
  else
    *dy = weir_grad_node(ctx, "add", 2, (weir_ref[]){*dy, g}, NULL);
}
