/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/compile/compile.h"

#include <assert.h>
#include <string.h>

#include "runtime/exec/compile/compile_comm.h"
#include "runtime/exec/compile/compile_control.h"
#include "runtime/exec/compile/compile_cut.h"
#include "runtime/exec/compile/compile_emit.h"
#include "runtime/exec/compile/compile_gpu.h"
#include "runtime/exec/compile/compile_internal.h"
#include "runtime/exec/compile/compile_kernel.h"
#include "runtime/exec/compile/compile_layout.h"
#include "runtime/exec/compile/compile_outputs.h"
#include "runtime/exec/compile/compile_over.h"
#include "runtime/exec/compile/compile_parts.h"
#include "runtime/exec/compile/compile_share.h"
#include "runtime/exec/compile/compile_take.h"
#include "runtime/graph/mesh/mesh_ranks.h"

/* The walk over the graph: each node that the outputs need becomes a constant,
 * an external, an alias or an instruction. Nodes are topologically ordered, so
 * operands have their program values before a reader is met. */

static weir_status fail_at(const weir_node *node, weir_error *err,
                           weir_error_id id, const char *what) {
  weir_status s =
      weir_fail(err, id, &node->mark, "%.*s: %s", WEIR_SV(node->name), what);
  weir_error_set_node(err, node->name.data, node->name.size);
  return s;
}

/* ---- Nodes that are not kernels */

/* |id| has the bytes of |of|. */
static weir_status alias(weir_compiler *c, weir_value_id id, weir_value_id of,
                         bool keep_frozen, weir_error *err) {
  assert(c->values[of] != WEIR_NO_INDEX);
  weir_value_spec spec = {.storage = WEIR_STORAGE_ALIAS,
                          .alias = c->values[of]};
  WEIR_TRY(weir_compile_value(c, id, &spec, err));
  c->frozen[id] = keep_frozen && c->frozen[of];
  c->instrs[c->graph->values[id].node] = c->instrs[c->graph->values[of].node];
  return WEIR_OK;
}

static weir_status frozen_value(weir_compiler *c, weir_value_id id,
                                const void *data, weir_error *err) {
  weir_value_spec spec = {.storage = WEIR_STORAGE_CONST, .data = data};
  c->frozen[id] = true;
  return weir_compile_value(c, id, &spec, err);
}

static weir_status const_node(weir_compiler *c, const weir_node *node,
                              weir_error *err) {
  weir_value_id id = node->first_output;
  const weir_value *v = &c->graph->values[id];
  const weir_tensor *t = node->attrs[0].tensor;
  if (t->dtype == v->dtype) return frozen_value(c, id, t->data, err);
  if (!weir_compile_value_here(c, id))
    return frozen_value(c, id, weir_compile_no_bytes, err);
  weir_tensor *converted = NULL;
  WEIR_TRY(weir_tensor_create_shaped(c->env->alloc, v->dtype, &t->shape,
                                     &converted, err));
  int64_t n = weir_shape_elements(&t->shape);
  for (int64_t i = 0; i < n; i++) {
    if (weir_dtype_is_float(v->dtype))
      weir_tensor_set_f64(converted, i, weir_tensor_get_f64(t, i));
    else
      weir_tensor_set_i64(converted, i, weir_tensor_get_i64(t, i));
  }
  char *data = weir_arena_string(c->arena, converted->data, converted->bytes);
  weir_tensor_unref(converted);
  if (data == NULL) return weir_fail_memory(err, 0);
  return frozen_value(c, id, data, err);
}

static weir_status feed_node(weir_compiler *c, const weir_node *node,
                             weir_error *err) {
  weir_value_id id = node->first_output;
  for (uint32_t k = 0; k < c->request->feed_count; k++)
    if (c->feeds[k] == id) {
      if (c->known_feeds != NULL && c->known_feeds[k] != NULL)
        return frozen_value(c, id, c->known_feeds[k], err);
      weir_value_spec spec = {.storage = WEIR_STORAGE_EXTERNAL, .external = k};
      return weir_compile_fed(c, id, &spec, err);
    }
  if (weir_compile_lacks_default(node))
    return weir_compile_fail_unfed(node, err);
  return alias(c, id, node->inputs[0], false, err);
}

static weir_status var_node(weir_compiler *c, weir_node_id id,
                            weir_error *err) {
  const weir_node *node = &c->graph->nodes[id];
  const weir_compile_request *r = c->request;
  bool bytes = weir_compile_value_here(c, node->first_output);
  const void *data = r->constant_var != NULL
                         ? r->constant_var(r->constant_self, node->name, bytes)
                         : NULL;
  if (data != NULL) return frozen_value(c, node->first_output, data, err);
  weir_value_spec spec = {.storage = WEIR_STORAGE_EXTERNAL,
                          .external = c->external_count};
  WEIR_TRY(weir_compile_value(c, node->first_output, &spec, err));
  c->vars[c->var_count] = (weir_var_use){.name = node->name,
                                         .dtype = spec.dtype,
                                         .bytes = spec.bytes,
                                         .read = c->external_count++,
                                         .write = WEIR_NO_INDEX,
                                         .commit = WEIR_NO_INDEX,
                                         .over_feed = WEIR_NO_INDEX,
                                         .elsewhere = c->elsewhere,
                                         .gpu = weir_compile_gpu(c)};
  c->var_of[id] = ++c->var_count;
  return WEIR_OK;
}

/* The new value of assign_add: a kernel of `add`. */
static weir_status add_kernel(weir_compiler *c, weir_node_id id,
                              weir_error *err) {
  const weir_node *node = &c->graph->nodes[id];
  const weir_op_def *add =
      weir_registry_find_op(c->graph->registry, WEIR_SV_LIT("add"));
  weir_value_id *out = weir_arena_array(c->arena, 1, sizeof *out);
  weir_call *call = NULL;
  if (add == NULL)
    return fail_at(node, err, WEIR_W3001, "there is no op `add`");
  WEIR_TRY(weir_compile_call(c, id, add, NULL, &call, err));
  if (out == NULL) return weir_fail_memory(err, sizeof *out);
  out[0] = node->first_output;
  weir_emit emit = {.calls = call,
                    .call_count = 1,
                    .node = node,
                    .node_id = id,
                    .in = node->inputs,
                    .in_count = 2,
                    .out = out,
                    .out_count = 1};
  WEIR_TRY(weir_compile_choose(c, &emit, NULL, err));
  bool taken = false;
  WEIR_TRY(weir_compile_take(c, &emit, &taken, err));
  return taken ? WEIR_OK : weir_compile_emit(c, &emit, err);
}

static weir_status commit_node(weir_compiler *c, weir_node_id id,
                               weir_error *err) {
  const weir_node *node = &c->graph->nodes[id];
  weir_node_id owner = c->graph->values[node->inputs[0]].node;
  if (c->var_of[owner] == 0)
    return fail_at(node, err, WEIR_W2020,
                   "the node assigns to a value that is no variable");
  weir_var_use *use = &c->vars[c->var_of[owner] - 1];
  if (use->commit != WEIR_NO_INDEX)
    return fail_at(node, err, WEIR_W2020,
                   "the variable is assigned twice in one step");
  if (strcmp(node->op->name, "assign_add") == 0)
    WEIR_TRY(add_kernel(c, id, err));
  else
    WEIR_TRY(alias(c, node->first_output, node->inputs[1], false, err));
  use->write = c->external_count++;
  use->commit = c->values[node->first_output];
  if (use->elsewhere != c->elsewhere)
    return fail_at(node, err, WEIR_W9001,
                   "the variable and its new value are in different processes");
  c->writes = c->writes || !c->elsewhere;
  return WEIR_OK;
}

static weir_status nothing_run(const weir_args *args) {
  (void)args;
  return WEIR_OK;
}

/* group, no_op: an instruction that waits for its inputs. */
static weir_status control_node(weir_compiler *c, weir_node_id id,
                                weir_error *err) {
  weir_emit emit = {.node = &c->graph->nodes[id],
                    .node_id = id,
                    .in = c->graph->nodes[id].inputs,
                    .in_count = c->graph->nodes[id].input_count,
                    .run = nothing_run,
                    .kernel = "none",
                    .call_count = 0};
  return weir_compile_emit(c, &emit, err);
}

static weir_status plain_node(weir_compiler *c, weir_node_id id,
                              weir_error *err) {
  const weir_node *node = &c->graph->nodes[id];
  const weir_value *v = &c->graph->values[node->first_output];
  if (node->output_count == 1 && v->known != NULL &&
      !(node->op->flags & WEIR_OP_EFFECT))
    return frozen_value(c, node->first_output, v->known->data, err);
  switch (node->op->instr) {
    case WEIR_INSTR_CONST:
      return const_node(c, node, err);
    case WEIR_INSTR_FEED:
      return feed_node(c, node, err);
    case WEIR_INSTR_VAR_READ:
      return var_node(c, id, err);
    case WEIR_INSTR_VAR_COMMIT:
      return commit_node(c, id, err);
    case WEIR_INSTR_NONE:
      return control_node(c, id, err);
    case WEIR_INSTR_LOOP:
    case WEIR_INSTR_BRANCH:
      return weir_compile_control(c, id, err);
    case WEIR_INSTR_COLLECTIVE:
      return weir_compile_collective(c, id, err);
    default:
      break;
  }
  if (node->op->flags & WEIR_OP_VIEW)
    return alias(c, node->first_output, node->inputs[0], true, err);
  return weir_compile_node(c, id, err);
}

/* ---- Groups: emitted when their last member is met. */

static weir_status alone(weir_compiler *c, weir_node_id id, const char *reason,
                         weir_error *err) {
  WEIR_TRY(plain_node(c, id, err));
  if (c->instrs[id] == WEIR_NO_INDEX || c->elsewhere) return WEIR_OK;
  weir_instr_spec *s = &c->builder->instrs.items[c->instrs[id]].spec;
  if (s->node_order == id) s->reason = reason;
  return WEIR_OK;
}

/* The group without its last member, a pooling, which comes behind it. */
static weir_status without_pool(weir_compiler *c, uint32_t group, bool *done,
                                const char *why, weir_error *err) {
  weir_node_id pool = c->group_head[group], rest = c->group_next[pool];
  bool pools = (c->graph->nodes[pool].op->flags & WEIR_OP_WINDOW) != 0;
  if (!pools || rest == WEIR_NO_INDEX || c->group_next[rest] == WEIR_NO_INDEX)
    return WEIR_OK;
  c->group_head[group] = rest;
  WEIR_TRY(weir_compile_group(c, group, done, &(const char *){NULL}, err));
  c->group_head[group] = pool;
  return *done ? alone(c, pool, why, err) : WEIR_OK;
}

static weir_status group_member(weir_compiler *c, weir_node_id id,
                                weir_error *err) {
  uint32_t group = c->graph->nodes[id].group;
  if (--c->group_size[group] > 0) return WEIR_OK;
  bool done = false;
  const char *reason = NULL;
  WEIR_TRY(weir_compile_group(c, group, &done, &reason, err));
  if (!done) WEIR_TRY(without_pool(c, group, &done, reason, err));
  if (done) return WEIR_OK;
  weir_node_id list = WEIR_NO_INDEX; /* backwards; no value inside is N16 */
  for (weir_node_id m = c->group_head[group]; m != WEIR_NO_INDEX;) {
    weir_node_id next = c->group_next[m];
    c->group_next[m] = list;
    list = m;
    m = next;
  }
  for (weir_node_id m = list; m != WEIR_NO_INDEX; m = c->group_next[m])
    WEIR_TRY(alone(c, m, reason, err));
  return WEIR_OK;
}

/* ---- The whole */

static bool is_fed(const weir_compiler *c, weir_value_id id) {
  for (uint32_t k = 0; k < c->request->feed_count; k++)
    if (c->feeds[k] == id) return true;
  return false;
}

/* Marks the nodes that runs carry out: those that outputs and targets need, but
 * not the first value of a variable nor the default of a fed input. */
static weir_status mark_needed(weir_compiler *c, weir_error *err) {
  const weir_graph *g = c->graph;
  for (uint32_t k = 0; k < c->request->fetch_count; k++)
    c->needed[g->values[c->fetches[k]].node] = true;
  for (uint32_t k = 0; k < c->target_count; k++)
    if (c->targets[k] != WEIR_NO_INDEX) c->needed[c->targets[k]] = true;
  WEIR_TRY(weir_graph_mark_ranks(g, NULL, c->needed, err));
  if (c->sizes_only) memset(c->needed, true, g->node_count);
  for (weir_node_id id = g->node_count; id-- > 0;) {
    const weir_node *node = &g->nodes[id];
    if (!c->needed[id]) continue;
    for (uint32_t i = 0; i < node->after_count; i++)
      c->needed[node->after[i]] = true;
    if (node->op->instr == WEIR_INSTR_VAR_READ) continue;
    if (node->op->instr == WEIR_INSTR_FEED && is_fed(c, node->first_output))
      continue;
    for (uint32_t i = 0; i < node->input_count; i++)
      if (node->inputs[i] != WEIR_NO_VALUE)
        c->needed[g->values[node->inputs[i]].node] = true;
  }
  return WEIR_OK;
}

static weir_status visit(weir_compiler *c, weir_node_id id, weir_error *err) {
  if (!c->needed[id]) return WEIR_OK;
  if (id % 64 == 0) WEIR_TRY(weir_alloc_check(c->env->alloc, err));
  if (c->partition != NULL) WEIR_TRY(weir_compile_arrive(c, id, err));
  return c->graph->nodes[id].group != WEIR_NO_GROUP ? group_member(c, id, err)
                                                    : plain_node(c, id, err);
}

/* Constants, which have no device; then the others, as the plan begins them. */
static weir_status visit_parts(weir_compiler *c, weir_error *err) {
  const weir_partition *p = c->partition;
  for (weir_node_id id = 0; id < c->graph->node_count; id++)
    if (p->part_of[id] == WEIR_PLACE_NONE) WEIR_TRY(visit(c, id, err));
  for (uint32_t i = 0; i < p->order_count; i++)
    WEIR_TRY(visit(c, p->order[i], err));
  return WEIR_OK;
}

static weir_status walk(weir_compiler *c, weir_error *err) {
  const weir_graph *g = c->graph;
  WEIR_TRY(mark_needed(c, err));
  for (weir_node_id id = 0; id < g->node_count; id++) {
    uint32_t group = g->nodes[id].group;
    if (group == WEIR_NO_GROUP || !c->needed[id]) continue;
    c->group_size[group]++;
    c->group_next[id] = c->group_head[group];
    c->group_head[group] = id;
  }
  weir_compile_find_readers(c);
  WEIR_TRY(weir_compile_layouts(c, err));
  if (c->partition != NULL) {
    WEIR_TRY(weir_compile_parts_begin(c, err));
    WEIR_TRY(visit_parts(c, err));
  } else {
    for (weir_node_id id = 0; id < g->node_count; id++)
      WEIR_TRY(visit(c, id, err));
  }
  WEIR_TRY(weir_compile_outputs(c, err));
  return weir_compile_over(c, err);
}

static uint32_t variables_of(const weir_graph *g) {
  uint32_t count = 0;
  for (weir_node_id id = 0; id < g->node_count; id++)
    count += g->nodes[id].op->instr == WEIR_INSTR_VAR_READ;
  return count;
}

static weir_status make_tables(weir_compiler *c, weir_error *err) {
  const weir_graph *g = c->graph;
  c->arena = weir_program_builder_arena(c->builder);
  c->values = weir_arena_array(c->arena, g->value_count, sizeof *c->values);
  c->frozen = weir_arena_array(c->arena, g->value_count, sizeof *c->frozen);
  c->instrs = weir_arena_array(c->arena, g->node_count, sizeof *c->instrs);
  c->home = weir_arena_array(c->arena, g->value_count, sizeof *c->home);
  c->vars = weir_arena_array(c->arena, variables_of(g), sizeof *c->vars);
  c->var_of = weir_arena_array(c->arena, g->node_count, sizeof *c->var_of);
  c->group_size =
      weir_arena_array(c->arena, g->group_count, sizeof *c->group_size);
  c->group_head =
      weir_arena_array(c->arena, g->group_count, sizeof *c->group_head);
  c->needed = weir_arena_array(c->arena, g->node_count, sizeof *c->needed);
  c->layouts = weir_arena_array(c->arena, g->value_count, sizeof *c->layouts);
  c->reader = weir_arena_array(c->arena, g->value_count, sizeof *c->reader);
  c->group_next =
      weir_arena_array(c->arena, g->node_count, sizeof *c->group_next);
  if (c->values == NULL || c->frozen == NULL || c->instrs == NULL ||
      c->vars == NULL || c->var_of == NULL || c->group_size == NULL ||
      c->group_head == NULL || c->group_next == NULL || c->layouts == NULL ||
      c->reader == NULL || c->needed == NULL || c->home == NULL)
    return weir_fail_memory(err, 0);
  if (c->partition == NULL &&
      !weir_program_reserve(c->builder, g->value_count, g->node_count))
    return weir_fail_memory(err, g->node_count * sizeof(weir_instr));
  memset(c->values, 0xff, g->value_count * sizeof *c->values);
  memset(c->instrs, 0xff, g->node_count * sizeof *c->instrs);
  memset(c->home, 0xff, g->value_count * sizeof *c->home);
  memset(c->group_head, 0xff, g->group_count * sizeof *c->group_head);
  c->external_count = c->request->feed_count + c->request->fetch_count;
  return WEIR_OK;
}

/* The cut, and the request's ids in it. */
static weir_status prepare_graph(weir_compiler *c, weir_error *err) {
  const weir_compile_request *r = c->request;
  const weir_cut *cut = r->cut;
  if (cut == NULL) WEIR_TRY(weir_compile_cut(c->env, r, false, &c->cut, err));
  if (cut == NULL) cut = c->cut;
  for (uint32_t k = 0; k < r->feed_count; k++)
    c->feeds[k] = cut->values[r->feeds[k]];
  c->fetches = cut->fetches;
  c->targets = cut->targets;
  c->target_count = cut->target_count;
  c->graph = weir_graph_ref(cut->graph);
  if (r->plan == NULL) return WEIR_OK;
  WEIR_TRY(weir_plan_partition(r->plan, &c->partition, err));
  if (c->partition->part_count == 0) c->partition = NULL;
  return WEIR_OK;
}

static weir_status finish(weir_compiler *c, weir_compiled *out,
                          weir_error *err) {
  const weir_compile_options *o = &c->request->options;
  weir_program_options options = {.threads = o->threads,
                                  .memory_limit = o->memory_limit,
                                  .one_task = o->one_task,
                                  .graph = c->graph};
  weir_program *program = NULL;
  weir_compile_parts_options(c, &options);
  WEIR_TRY(weir_program_finish(c->builder, &options, &program, err));
  out->program = program;
  if (c->partition != NULL)
    WEIR_TRY(weir_compile_parts_end(c, program, &options, err));
  out->vars = c->vars; /* in the program's arena */
  out->var_count = c->var_count;
  for (weir_node_id id = 0; id < c->graph->node_count; id++)
    out->node_count += c->needed[id];
  out->group_count = c->group_count;
  out->writes = c->writes;
  out->tasks = c->tasks;
  c->tasks = NULL;
  return WEIR_OK;
}

weir_status weir_compile(const weir_env *env,
                         const weir_compile_request *request,
                         weir_compiled **out_compiled, weir_error *err) {
  weir_compiler c = {
      .env = env, .request = request, .kind = weir_device_kind_host()};
  weir_compiled *out = weir_alloc_array(env->alloc, 1, sizeof *out);
  *out_compiled = NULL;
  c.feeds = weir_alloc_array(env->alloc, request->feed_count, sizeof *c.feeds);
  weir_status s = WEIR_OK;
  if (out == NULL || c.feeds == NULL) s = weir_fail_memory(err, sizeof *out);
  if (s == WEIR_OK) s = prepare_graph(&c, err);
  if (s == WEIR_OK)
    s = weir_program_builder_create(env, c.graph->alloc, &c.builder, err);
  if (s == WEIR_OK) s = make_tables(&c, err);
  if (s == WEIR_OK) s = walk(&c, err);
  if (s == WEIR_OK) s = finish(&c, out, err);
  weir_compile_parts_release(&c);
  weir_free(env->alloc, c.feeds);
  weir_task_cut_release(c.tasks);
  weir_cut_release(c.cut);
  if (out != NULL) {
    out->env = env;
    out->graph = c.graph;
    out->plan = request->plan != NULL ? weir_plan_ref(request->plan) : NULL;
    out->partition = c.partition;
  }
  if (s == WEIR_OK)
    *out_compiled = out;
  else
    weir_compiled_release(out);
  return s;
}

weir_status weir_compile_sizes(weir_compiler *c, weir_error *err) {
  c->kind = weir_device_kind_host();
  c->sizes_only = true;
  WEIR_TRY(
      weir_program_builder_create(c->env, c->graph->alloc, &c->builder, err));
  WEIR_TRY(make_tables(c, err));
  return walk(c, err);
}

weir_status weir_compile_body(weir_compiler *outer,
                              const weir_compile_request *request,
                              const void *const *known_feeds,
                              const weir_program **out_program,
                              weir_error *err) {
  weir_compiler c = {.env = outer->env,
                     .request = request,
                     .graph = request->graph,
                     .kind = outer->kind,
                     .gpu = weir_compile_gpu(outer),
                     .sizes_only = outer->sizes_only,
                     .feeds = (weir_value_id *)(uintptr_t)request->feeds,
                     .fetches = request->fetches,
                     .known_feeds = known_feeds};
  const weir_compile_options *o = &request->options;
  weir_program_options options = {
      .threads = o->threads, .body = true, .gpu = c.gpu, .graph = c.graph};
  weir_program *program = NULL;
  *out_program = NULL;
  weir_status s =
      weir_program_builder_create(c.env, c.graph->alloc, &c.builder, err);
  if (s == WEIR_OK) s = make_tables(&c, err);
  if (s == WEIR_OK) s = walk(&c, err);
  if (s == WEIR_OK) s = weir_program_finish(c.builder, &options, &program, err);
  weir_program_builder_release(c.builder);
  outer->group_count += c.group_count;
  *out_program = program;
  return s;
}

void weir_compiled_release(weir_compiled *compiled) {
  if (compiled == NULL) return;
  weir_program_release(compiled->program);
  weir_graph_unref(compiled->graph);
  weir_task_cut_release(compiled->tasks);
  weir_plan_unref(compiled->plan);
  weir_free(compiled->env->alloc, compiled);
}
