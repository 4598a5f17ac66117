/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/node.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/graph/attrs.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/control.h"
#include "runtime/graph/explain.h"
#include "runtime/graph/graph_internal.h"
#include "runtime/graph/names.h"
#include "runtime/graph/op_info.h"

/* Adding one node: counts, attributes, dtypes, shape rule, then the records.
 * Until the last step nothing of the graph has changed but its arena, its
 * symbols and the tensors it holds: a node that fails is not in the graph.
 *
 * Invariant: a node's inputs, control predecessors and twin have smaller ids.
 * All walks over graphs rest on it: from first to last sees producers before
 * readers, from last to first the reverse, and no walk needs a stack. */

enum { WEIR_MAX_OUTPUTS = 65536, WEIR_MAX_NODES = 1 << 28 };

static weir_status fail_named(weir_infer *ctx, weir_status s) {
  weir_error_set_node(&ctx->diag->error, ctx->spec->name.data,
                      ctx->spec->name.size);
  return s;
}

static weir_status check_inputs(weir_infer *ctx) {
  const weir_node_spec *spec = ctx->spec;
  const weir_op_info *info = ctx->info;
  uint32_t n = spec->input_count;
  if (n < info->in_required || (n > info->in_count && !info->variadic))
    return weir_shape_fail(
        &ctx->base, WEIR_W1108, "takes %s%" PRIu32 " input%s, not %" PRIu32,
        info->in_required < info->in_count || info->variadic
            ? n < info->in_required ? "at least " : "at most "
            : "",
        n < info->in_required ? info->in_required : info->in_count,
        info->in_count == 1 ? "" : "s", n);
  const weir_graph_full *graph = ctx->builder->graph;
  for (uint32_t i = 0; i < n; i++) {
    weir_value_id id = spec->inputs[i];
    if (id == WEIR_NO_VALUE) {
      if (i >= info->in_required) continue;
      return weir_shape_fail(&ctx->base, WEIR_W1108, "input %s is missing",
                             info->op->inputs[i].name);
    }
    if (id >= graph->values.count)
      return weir_shape_fail(&ctx->base, WEIR_W1107,
                             "input %" PRIu32 " is no value of the graph", i);
  }
  return WEIR_OK;
}

/* Fills ctx->base.attrs: the op's defaults as they are when nothing is given.
 */
static weir_status check_attrs(weir_infer *ctx) {
  const weir_op_info *info = ctx->info;
  const weir_attr *given = ctx->spec->attrs;
  weir_arena *arena = &ctx->builder->graph->g.arena;
  weir_attr *attrs = weir_arena_array(arena, info->attr_count, sizeof *attrs);
  if (attrs == NULL) return weir_fail_memory(&ctx->diag->error, sizeof *attrs);
  for (uint32_t i = 0; i < info->attr_count; i++) {
    const weir_attr_def *def = &info->op->attrs[i];
    attrs[i] = info->defaults[i];
    if (given != NULL && given[i].kind != WEIR_ATTR_NONE) {
      weir_status s =
          weir_attr_normalize(info->op, i, &given[i], &ctx->spec->mark, arena,
                              &attrs[i], &ctx->diag->error);
      if (s != WEIR_OK) return fail_named(ctx, s);
    } else if (attrs[i].kind == WEIR_ATTR_NONE &&
               (def->fallback == NULL || strcmp(def->fallback, "none") != 0)) {
      return weir_shape_fail(&ctx->base, WEIR_W1110,
                             "attribute %s must be given", def->name);
    }
  }
  ctx->base.attrs = attrs;
  return WEIR_OK;
}

static void dtype_set_text(unsigned types, char *text, size_t capacity) {
  size_t n = 0;
  text[0] = '\0';
  for (unsigned bit = 1; bit <= WEIR_BOOL && n < capacity; bit <<= 1)
    if (types & bit)
      n += (size_t)snprintf(text + n, capacity - n, "%s%s", n > 0 ? " " : "",
                            weir_dtype_name((weir_dtype)bit));
}

static weir_status refuse_dtype(weir_infer *ctx, const char *what, unsigned got,
                                unsigned want) {
  char text[64];
  dtype_set_text(want, text, sizeof text);
  return weir_shape_fail(&ctx->base, WEIR_W2005, "%s is %s, must be %s%s", what,
                         weir_dtype_name((weir_dtype)got),
                         (want & (want - 1)) != 0 ? "one of " : "", text);
}

static weir_status bind_input(weir_infer *ctx, uint32_t i) {
  const weir_op_info *info = ctx->info;
  uint32_t port = i < info->in_count ? i : info->in_count - 1;
  unsigned got = weir_shape_in_dtype(&ctx->base, i);
  const char *name = info->op->inputs[port].name;
  if (got == WEIR_DTYPE_NONE) return WEIR_OK;
  if ((info->in_types[port] & got) == 0)
    return refuse_dtype(ctx, name, got, info->in_types[port]);
  int8_t var = info->in_var[port];
  if (var < 0) return WEIR_OK;
  if (ctx->vars[var] == 0) ctx->vars[var] = got;
  if (ctx->vars[var] == got) return WEIR_OK;
  weir_status s = weir_shape_fail(&ctx->base, WEIR_W2005,
                                  "%s is %s, the inputs before it are %s", name,
                                  weir_dtype_name((weir_dtype)got),
                                  weir_dtype_name((weir_dtype)ctx->vars[var]));
  weir_shape_hint(&ctx->base, "cast(..., %s) converts",
                  weir_dtype_name((weir_dtype)ctx->vars[var]));
  return s;
}

/* Type variables from attributes first, then from inputs: an input that differs
 * from a given dtype, or from the inputs before it, is the one reported. */
static weir_status bind_dtypes(weir_infer *ctx) {
  const weir_op_info *info = ctx->info;
  memset(ctx->vars, 0, sizeof ctx->vars);
  for (uint32_t v = 0; v < info->type_count; v++) {
    if (info->var_attr[v] < 0) continue;
    const weir_attr *attr = &ctx->base.attrs[info->var_attr[v]];
    if (attr->kind != WEIR_ATTR_DTYPE) continue;
    if ((info->op->types[v].types & (unsigned)attr->dtype) == 0)
      return refuse_dtype(ctx, info->op->attrs[info->var_attr[v]].name,
                          attr->dtype, info->op->types[v].types);
    ctx->vars[v] = attr->dtype;
  }
  for (uint32_t i = 0; i < ctx->spec->input_count; i++) {
    weir_status s = bind_input(ctx, i);
    if (s != WEIR_OK) return s;
  }
  return WEIR_OK;
}

/* The dtype of the node's literal, for ops without a dtype attribute; 0: none.
 */
static unsigned literal_dtype(const weir_infer *ctx) {
  for (uint32_t i = 0; i < ctx->info->attr_count; i++)
    if (ctx->base.attrs[i].kind == WEIR_ATTR_TENSOR)
      return ctx->base.attrs[i].tensor->dtype;
  return 0;
}

/* Outputs with the dtypes that the signature gives; the rule may set others. */
static weir_status make_outputs(weir_infer *ctx) {
  const weir_op_info *info = ctx->info;
  weir_graph_builder *b = ctx->builder;
  ctx->base.out_count = info->out_count;
  if (ctx->spec->body_count > 0)
    ctx->base.out_count = weir_bodies_output_count(ctx);
  else if (info->op->output_count != NULL)
    ctx->base.out_count =
        info->op->output_count(ctx->base.attrs, ctx->spec->input_count);
  if (ctx->base.out_count > WEIR_MAX_OUTPUTS)
    return weir_shape_fail(&ctx->base, WEIR_W1111,
                           "%" PRIu32 " outputs, at most 65536",
                           ctx->base.out_count);
  b->outs.count = 0;
  if (!weir_vec_reserve(b->alloc, &b->outs, ctx->base.out_count))
    return weir_fail_memory(&ctx->diag->error, sizeof(weir_infer_out));
  ctx->outs = b->outs.items;
  for (uint32_t i = 0; i < ctx->base.out_count; i++) {
    uint32_t port = i < info->out_count ? i : info->out_count - 1;
    int8_t var = info->out_count > 0 ? info->out_var[port] : -1;
    unsigned dtype = var >= 0 ? ctx->vars[var] : 0;
    if (var < 0 && info->out_count > 0) dtype = info->out_types[port];
    if ((dtype & (dtype - 1)) != 0) dtype = 0; /* the rule says which */
    if (dtype == 0) dtype = literal_dtype(ctx);
    ctx->outs[i] = (weir_infer_out){.dtype = (weir_dtype)dtype};
  }
  return WEIR_OK;
}

static weir_status run_rule(weir_infer *ctx) {
  ctx->memory_failed = false;
  weir_status s =
      ctx->info->op->shape != NULL ? ctx->info->op->shape(&ctx->base) : WEIR_OK;
  if (ctx->memory_failed)
    return weir_fail_memory(&ctx->diag->error, sizeof(char *));
  if (s != WEIR_OK) return s;
  for (uint32_t i = 0; i < ctx->base.out_count; i++)
    if (ctx->outs[i].shape == NULL || ctx->outs[i].dtype == WEIR_DTYPE_NONE)
      return weir_shape_fail(
          &ctx->base, WEIR_W9001,
          "output %" PRIu32 " has no type after the shape rule", i);
  return WEIR_OK;
}

/* ---- Records. From here on only memory can fail. */

static void *copy_ids(weir_arena *arena, const uint32_t *ids, uint32_t count) {
  uint32_t *copy = weir_arena_alloc(arena, count * sizeof *copy);
  if (copy != NULL && count > 0) memcpy(copy, ids, count * sizeof *copy);
  return copy;
}

/* The literals among the attributes are held by the graph. */
static bool hold_literals(weir_infer *ctx) {
  weir_graph_builder *b = ctx->builder;
  for (uint32_t i = 0; i < ctx->info->attr_count; i++) {
    if (ctx->base.attrs[i].kind != WEIR_ATTR_TENSOR) continue;
    if (!weir_vec_reserve(b->alloc, &b->graph->tensors, 1)) return false;
    b->graph->tensors.items[b->graph->tensors.count++] =
        weir_tensor_ref(ctx->base.attrs[i].tensor);
  }
  return true;
}

/* References to the bodies, and the list of them in the arena. */
static const weir_graph *const *hold_bodies(weir_infer *ctx) {
  weir_graph_builder *b = ctx->builder;
  const weir_node_spec *spec = ctx->spec;
  const weir_graph **list =
      weir_arena_array(&b->graph->g.arena, spec->body_count, sizeof *list);
  if (list == NULL ||
      !weir_vec_reserve(b->alloc, &b->graph->bodies, spec->body_count))
    return NULL;
  for (uint32_t i = 0; i < spec->body_count; i++) {
    list[i] = weir_graph_ref(spec->bodies[i]);
    b->graph->bodies.items[b->graph->bodies.count++] = list[i];
  }
  return list;
}

static void append_values(weir_infer *ctx, weir_node_id id) {
  weir_graph_full *graph = ctx->builder->graph;
  for (uint32_t i = 0; i < ctx->base.out_count; i++)
    graph->values.items[graph->values.count++] =
        (weir_value){.dtype = ctx->outs[i].dtype,
                     .port = i,
                     .node = id,
                     .shape = ctx->outs[i].shape,
                     .known = ctx->outs[i].known};
}

static bool append(weir_infer *ctx, uint64_t hash, weir_name_slot *slot,
                   weir_node_id *out) {
  weir_graph_builder *b = ctx->builder;
  weir_graph_full *graph = b->graph;
  const weir_node_spec *spec = ctx->spec;
  weir_arena *arena = &graph->g.arena;
  weir_node_id id = (weir_node_id)graph->nodes.count;
  assert(!spec->has_twin || spec->twin < id);
  for (uint32_t i = 0; i < spec->after_count; i++) assert(spec->after[i] < id);
  const uint32_t *inputs = copy_ids(arena, spec->inputs, spec->input_count);
  /* Most nodes have no control predecessors: no allocation for them. */
  const uint32_t *after = spec->after_count == 0
                              ? inputs
                              : copy_ids(arena, spec->after, spec->after_count);
  if (inputs == NULL || after == NULL || !hold_literals(ctx) ||
      !weir_vec_reserve(b->alloc, &graph->nodes, 1) ||
      !weir_vec_reserve(b->alloc, &graph->values, ctx->base.out_count))
    return false;
  const weir_graph *const *bodies = NULL;
  if (spec->body_count > 0 && (bodies = hold_bodies(ctx)) == NULL) return false;
  graph->nodes.items[graph->nodes.count++] =
      (weir_node){.name = spec->name,
                  .op = ctx->info->op,
                  .attrs = ctx->base.attrs,
                  .inputs = inputs,
                  .after = after,
                  .input_count = spec->input_count,
                  .after_count = spec->after_count,
                  .output_count = ctx->base.out_count,
                  .first_output = (weir_value_id)graph->values.count,
                  .group = WEIR_NO_GROUP,
                  .device = spec->device,
                  .mark = spec->mark,
                  .seed = spec->has_seed ? spec->seed : hash,
                  .bodies = bodies,
                  .body_count = spec->body_count,
                  .twin = spec->has_twin ? spec->twin : WEIR_NO_VALUE,
                  .update = spec->update};
  weir_names_set(&graph->names, slot, hash, id);
  append_values(ctx, id);
  weir_graph_sync(graph);
  *out = id;
  return true;
}

static weir_status add(weir_infer *ctx, weir_node_id *out) {
  weir_graph_builder *b = ctx->builder;
  weir_sv name = ctx->spec->name;
  uint64_t hash = weir_hash_bytes(name.data, name.size, b->graph->g.seed);
  weir_name_table *names = &b->graph->names;
  if (names->count >= names->capacity / 2 &&
      !weir_names_reserve(b->alloc, names, 2 * names->count + 1))
    return weir_fail_memory(&ctx->diag->error, sizeof(weir_name_slot));
  weir_name_slot *slot =
      weir_names_slot(names, b->graph->nodes.items, name, hash);
  if (slot == NULL)
    return weir_shape_fail(&ctx->base, WEIR_W1104, "the name is taken");
  if (b->graph->nodes.count >= WEIR_MAX_NODES)
    return weir_shape_fail(&ctx->base, WEIR_W1014, "too many nodes");
  WEIR_TRY(check_inputs(ctx));
  WEIR_TRY(check_attrs(ctx));
  WEIR_TRY(bind_dtypes(ctx));
  WEIR_TRY(make_outputs(ctx));
  WEIR_TRY(run_rule(ctx));
  if (append(ctx, hash, slot, out)) return WEIR_OK;
  return weir_fail_memory(&ctx->diag->error, sizeof(weir_node));
}

weir_status weir_graph_builder_add(weir_graph_builder *b,
                                   const weir_node_spec *spec,
                                   weir_node_id *out_node, weir_diag *diag) {
  *out_node = UINT32_MAX;
  if (diag == NULL) diag = &b->diag;
  weir_infer *ctx = &b->ctx; /* kept between nodes: its texts are large */
  ctx->base = (weir_shape_ctx){.vtable = &weir_infer_vtable,
                               .op = spec->op,
                               .in_count = spec->input_count};
  ctx->builder = b;
  ctx->spec = spec;
  ctx->diag = diag;
  ctx->info = weir_graph_builder_op(b, spec->op);
  diag->error.struct_size = sizeof diag->error;
  if (ctx->info == NULL || !weir_graph_builder_follow(b))
    return weir_fail_memory(&diag->error, sizeof(weir_op_info));
  weir_status s = add(ctx, out_node);
  if (s == WEIR_OK) return s;
  weir_error kept = diag->error;
  weir_diag_init(diag, &kept);
  weir_explain_inputs(&b->graph->g, spec, ctx->info, diag);
  return s;
}
