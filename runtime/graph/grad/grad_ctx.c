/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/grad/grad_ctx.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "runtime/graph/attrs.h"
#include "runtime/graph/graph_internal.h"
#include "runtime/graph/node.h"

/* The context of ops/grad_ctx.h for graphs: rules ask about types and add nodes
 * to the builder of a pass. The old nodes are copied first, one for one, so a
 * value of the old graph is named by the same id in the new one, and rules pass
 * inputs and outputs of the old node as inputs of new nodes. */

/* Keeps the first failure. */
static weir_ref failed(weir_grad_state *ctx, weir_status status) {
  if (ctx->status == WEIR_OK) ctx->status = status;
  return WEIR_NO_VALUE;
}

static const weir_value *value_of(const weir_grad_state *ctx, weir_ref value) {
  return &weir_graph_builder_graph(ctx->pass.builder)->values[value];
}

void weir_grad_ctx_at(weir_grad_state *ctx, const weir_node *node) {
  ctx->node = node;
  ctx->base.op = node->op;
  ctx->base.attrs = node->attrs;
  ctx->base.in = node->inputs;
  ctx->base.in_count = node->input_count;
  ctx->base.first_out = node->first_output;
}

/* ---- Questions of rules */

static weir_grad_state *state_of(weir_grad_ctx *base) {
  return (weir_grad_state *)base; /* base is its first member */
}

static const weir_grad_state *const_state_of(const weir_grad_ctx *base) {
  return (const weir_grad_state *)base;
}

static weir_ref dy_of(const weir_grad_ctx *base, uint32_t i) {
  return const_state_of(base)->dys[base->first_out + i];
}

static bool is_wanted(const weir_grad_ctx *base, weir_ref input) {
  assert(input < const_state_of(base)->pass.from->value_count);
  return const_state_of(base)->depends[input];
}

/* WEIR_NO_VALUE has an unknown shape: after a failure rules go on with it. */
static const weir_shape *shape_of(const weir_grad_ctx *base, weir_ref value) {
  static const weir_shape kUnknown = {.rank = WEIR_RANK_UNKNOWN};
  return value == WEIR_NO_VALUE ? &kUnknown
                                : value_of(const_state_of(base), value)->shape;
}

static weir_dtype dtype_of(const weir_grad_ctx *base, weir_ref value) {
  return value == WEIR_NO_VALUE ? WEIR_F32
                                : value_of(const_state_of(base), value)->dtype;
}

/* ---- Nodes that rules add */

/* grad/NODE/WHAT_NUMBER, unique; in the builder's arena. The counter goes on
 * from name to name, so the loop repeats only where the graph has such a name
 * of its own, as after an earlier gradient. */
weir_sv weir_grad_name(weir_grad_state *ctx, weir_graph_builder *builder,
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

const weir_op_def *weir_grad_op(const weir_grad_state *ctx, const char *name) {
  const weir_registry *registry = ctx->pass.from->registry;
  uint32_t index = weir_map_get(&ctx->ops, weir_sv_from(name));
  return index == WEIR_MAP_NONE ? NULL : weir_registry_op_at(registry, index);
}

weir_ref weir_grad_node_at(weir_grad_state *ctx, weir_graph_builder *builder,
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

static weir_ref add_node(weir_grad_ctx *base, const char *op_name,
                         uint32_t in_count, const weir_ref *in,
                         const weir_named_attr *attrs) {
  weir_grad_state *ctx = state_of(base);
  return weir_grad_node_at(ctx, ctx->pass.builder, op_name, in_count, in,
                           attrs);
}

static weir_ref add_scalar(weir_grad_ctx *base, weir_dtype dtype,
                           double value) {
  weir_grad_state *ctx = state_of(base);
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
  weir_ref made = weir_grad_node(base, "const", 0, NULL, attrs);
  weir_tensor_unref(tensor);
  return made;
}

static void add_to(weir_grad_ctx *base, weir_ref input, weir_ref g) {
  assert(input < state_of(base)->pass.from->value_count);
  weir_ref *dy = &state_of(base)->dys[input];
  /* A sum of gradients is a chain of adds in the order of the visits. */
  if (*dy == WEIR_NO_VALUE)
    *dy = g;
  else
    *dy = weir_grad_node(base, "add", 2, (weir_ref[]){*dy, g}, NULL);
}

static weir_status fail(weir_grad_ctx *base, weir_error_id id,
                        const char *text) {
  weir_grad_state *ctx = state_of(base);
  const weir_node *node = ctx->node;
  if (ctx->status != WEIR_OK) return ctx->status;
  ctx->status = weir_fail(ctx->err, id, &node->mark, "gradient of %s: %s",
                          node->op->name, text);
  weir_error_set_node(ctx->err, node->name.data, node->name.size);
  return ctx->status;
}

static const weir_grad_vtable kVtable = {.dy = dy_of,
                                         .wanted = is_wanted,
                                         .dtype = dtype_of,
                                         .shape = shape_of,
                                         .node = add_node,
                                         .scalar = add_scalar,
                                         .add = add_to,
                                         .fail = fail};

/* ---- Begin and end */

static weir_status make_tables(weir_grad_state *ctx, const weir_graph *from,
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

weir_status weir_grad_ctx_begin(weir_grad_state *ctx, const weir_graph *from,
                                weir_error *err) {
  *ctx = (weir_grad_state){.base.vtable = &kVtable, .err = err};
  weir_map_init(&ctx->ops, from->alloc);
  WEIR_TRY(weir_pass_begin(&ctx->pass, from, err));
  return make_tables(ctx, from, err);
}

weir_status weir_grad_ctx_begin_body(weir_grad_state *ctx,
                                     const weir_graph *from,
                                     weir_graph_builder *outer,
                                     weir_error *err) {
  *ctx = (weir_grad_state){.base.vtable = &kVtable, .err = err};
  weir_map_init(&ctx->ops, from->alloc);
  WEIR_TRY(weir_pass_begin_body(&ctx->pass, from, outer, err));
  return make_tables(ctx, from, err);
}

weir_status weir_grad_ctx_end(weir_grad_state *ctx, weir_status status,
                              weir_graph **out_graph, weir_error *err) {
  const weir_allocator *alloc = ctx->pass.alloc;
  weir_free(alloc, ctx->dys);
  weir_free(alloc, ctx->depends);
  weir_map_release(&ctx->ops);
  return weir_pass_end(&ctx->pass, status, out_graph, err);
}
