/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/compile/compile_kernel.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "kernels/registry.h"
#include "kernels/tune/timed.h"
#include "runtime/exec/compile/compile_emit.h"
#include "runtime/exec/compile/compile_gpu.h"
#include "runtime/exec/compile/compile_internal.h"
#include "runtime/exec/compile/compile_layout.h"
#include "runtime/exec/gpu/gpu_memory.h"

/* Kernels: the one for a node or a group, and the reason.
 *
 * The registry lists kernels in order of preference; the first that accepts the
 * call is taken, and the refusals of those before it become the reason. A group
 * is offered whole to the group kernels; if none takes it, its members are
 * emitted one by one (compile.c).
 *
 * A call holds op, attributes, types, shapes, layouts and known values, and
 * nothing about threads or devices of the plan: so the choice, and with it the
 * bits of a result, is the same for every placement and number of threads. */

static weir_status fill_operand(const weir_compiler *c, weir_value_id id,
                                weir_operand *out, weir_error *err) {
  if (!weir_graph_operand(c->graph, id, out)) {
    char type[128];
    const weir_node *node = &c->graph->nodes[c->graph->values[id].node];
    weir_status s = weir_fail(
        err, WEIR_W2008, &node->mark, "%s is not known before the run",
        weir_graph_type_text(c->graph, id, type, sizeof type));
    weir_error_set_node(err, node->name.data, node->name.size);
    return s;
  }
  if (id == WEIR_NO_VALUE) return WEIR_OK;
  out->layout = (weir_layout)c->layouts[id];
  uint32_t value = c->values[id];
  if (value != WEIR_NO_INDEX && c->frozen[id]) {
    const weir_pvalue *items = c->builder->values.items;
    out->value = items[items[value].root].data;
  }
  return WEIR_OK;
}

/* Output |i| of a node, or WEIR_NO_VALUE if it may be left out and has no
 * reader. */
static weir_value_id made_output(const weir_compiler *c, const weir_node *node,
                                 uint32_t i) {
  weir_value_id id = node->first_output + i;
  bool optional = i < WEIR_OP_OUTPUTS && node->op->output_count == NULL &&
                  node->op->outputs[i].optional;
  return optional && c->reader[id] == WEIR_NO_INDEX ? WEIR_NO_VALUE : id;
}

weir_status weir_compile_call(weir_compiler *c, weir_node_id id,
                              const weir_op_def *op, const weir_attr *attrs,
                              weir_call **out_call, weir_error *err) {
  const weir_node *node = &c->graph->nodes[id];
  weir_call *call = weir_arena_array(c->arena, 1, sizeof *call);
  uint32_t n = node->input_count + node->output_count;
  weir_operand *operands = weir_arena_array(c->arena, n, sizeof *operands);
  if (call == NULL || operands == NULL)
    return weir_fail_memory(err, n * sizeof *operands);
  for (uint32_t i = 0; i < node->input_count; i++)
    WEIR_TRY(fill_operand(c, node->inputs[i], &operands[i], err));
  for (uint32_t i = 0; i < node->output_count; i++)
    WEIR_TRY(fill_operand(c, made_output(c, node, i),
                          &operands[node->input_count + i], err));
  uint64_t session = c->request->options.seed;
  *call = (weir_call){
      .op = op,
      .profile = c->env->profile,
      .attrs = attrs,
      .in = operands,
      .out = operands + node->input_count,
      .in_count = node->input_count,
      .out_count = node->output_count,
      .node = node->name,
      .seed = session == 0
                  ? node->seed
                  : weir_hash_bytes(&session, sizeof session, node->seed)};
  *out_call = call;
  return WEIR_OK;
}

/* Prepares |call|, or |group|, and waits where that lacks memory of the GPU: a
 * product's handle has some. A failed one has nothing but bytes of the arena.
 */
static weir_status prepare(const weir_compiler *c,
                           const weir_kernel_def *kernel, const weir_call *call,
                           weir_prepared *out, weir_error *err) {
  const weir_prepared first = *out;
  const weir_exec_gpu *gpu = first.device != NULL ? weir_compile_gpu(c) : NULL;
  weir_gpu_wait wait = {0};
  weir_status s;
  do {
    *out = first;
    s = kernel->prepare(call, out, err);
  } while (s != WEIR_OK && weir_gpu_wait_more(gpu, &wait, &s, err));
  return s;
}

static weir_status prepare_group(const weir_compiler *c,
                                 const weir_group_kernel_def *kernel,
                                 const weir_group *group, weir_prepared *out,
                                 weir_error *err) {
  const weir_prepared first = *out;
  const weir_exec_gpu *gpu = first.device != NULL ? weir_compile_gpu(c) : NULL;
  weir_gpu_wait wait = {0};
  weir_status s;
  do {
    *out = first;
    s = kernel->prepare(group, out, err);
  } while (s != WEIR_OK && weir_gpu_wait_more(gpu, &wait, &s, err));
  return s;
}

/* Names the node in |err|; a kernel that gave no words gets some. */
static weir_status blame(const weir_node *node, weir_status s,
                         weir_error *err) {
  if (err == NULL) return s;
  if (err->id[0] == 0)
    (void)weir_fail(err, WEIR_W5001, &node->mark, "the kernel of %s failed",
                    node->op->name);
  weir_error_set_node(err, node->name.data, node->name.size);
  return s;
}

/* "kernel; not others: why" in the arena. */
static const char *keep_reason(weir_compiler *c, const char *also,
                               const char *refusals) {
  char text[768];
  snprintf(text, sizeof text, "%s%s%s", also != NULL ? also : "",
           also != NULL && refusals[0] != 0 ? "; " : "",
           refusals[0] != 0 ? refusals
           : also != NULL   ? ""
                            : "first choice");
  size_t n = strlen(text);
  if (n > 2 && text[n - 2] == ';') text[n - 2] = 0; /* the list's last "; " */
  const uint32_t kept = sizeof c->reasons / sizeof *c->reasons;
  for (uint32_t i = 0; i < kept; i++)
    if (c->reasons[i] != NULL && strcmp(c->reasons[i], text) == 0)
      return c->reasons[i];
  char *made = weir_arena_string(c->arena, text, strlen(text));
  c->reasons[c->reason_count++ % kept] = made;
  return made;
}

/* Whether the node may write over its first input. An input that it reads a
 * second time, as in f(x, x), must last until the kernel is done with it: an
 * element-wise op reads all of an element before it writes it, others write
 * parts of their results first. */
static bool may_be_in_place(const weir_compiler *c, const weir_node *node,
                            const weir_kernel_def *kernel) {
  if (!kernel->in_place) return false;
  if ((node->op->flags & WEIR_OP_ELEMENTWISE) != 0) return true;
  for (uint32_t i = 1; i < node->input_count; i++)
    if (node->inputs[i] != WEIR_NO_VALUE && node->inputs[0] != WEIR_NO_VALUE &&
        c->values[node->inputs[i]] == c->values[node->inputs[0]])
      return false;
  return true;
}

/* Whether the choices of a file count. */
static bool may_be_timed(const weir_compiler *c, weir_device_kind kind) {
  return c->env->tuned != NULL && weir_device_kinds[kind]->host &&
         !c->request->options.ref_kernels;
}

weir_status weir_compile_choose(weir_compiler *c, weir_emit *emit,
                                const char *also, weir_error *err) {
  const weir_call *call = emit->calls;
  char refusals[512] = "";
  /* What is computed now is the host's work on every device. */
  weir_device_kind kind = c->kind;
  if (!weir_device_kinds[kind]->host && weir_compile_folds(c, emit))
    kind = weir_device_kind_host();
  const weir_kernel_def *kernel = weir_kernel_choose(
      c->graph->registry, call, kind,
      c->request->options.ref_kernels && weir_device_kinds[kind]->host,
      refusals, sizeof refusals);
  const char *timed = NULL;
  if (kernel != NULL && may_be_timed(c, kind))
    WEIR_TRY(weir_timed_kernel(c->env, c->graph->registry, !c->sizes_only, call,
                               &kernel, &timed, err));
  if (timed != NULL) also = timed;
  if (kernel == NULL) {
    weir_status s = weir_fail(err, WEIR_W3001, &emit->node->mark,
                              "no kernel for %s on %s: %s", call->op->name,
                              weir_device_kinds[kind]->spelling,
                              refusals[0] != 0 ? refusals : "none is known");
    weir_error_set_node(err, call->node.data, call->node.size);
    return s;
  }
  emit->prepared =
      (weir_prepared){.arena = c->arena,
                      .alloc = c->env->alloc,
                      .device = kind == c->kind ? weir_compile_device(c) : NULL,
                      .tf32 = c->request->options.tf32,
                      .tuning = weir_compile_tuning(c),
                      .sizes_only = c->sizes_only};
  emit->prepared.state = kernel->prepare == NULL ? (void *)call : NULL;
  if (kernel->prepare != NULL && weir_compile_prepares(c, emit)) {
    weir_status s = prepare(c, kernel, call, &emit->prepared, err);
    if (s != WEIR_OK) return blame(emit->node, s, err);
    emit->release = kernel->release;
  }
  emit->run = kernel->run;
  emit->slices = kernel->slices;
  emit->fault = kernel->fault;
  emit->in_place = may_be_in_place(c, emit->node, kernel);
  emit->over_inputs = kernel->over_inputs;
  emit->kernel = kernel->name;
  emit->reason = keep_reason(c, also, refusals);
  return WEIR_OK;
}

/* For questions about layouts, whose refusals are no reason of the program. */
static const weir_kernel_def *choose_quietly(const weir_compiler *c,
                                             const weir_call *call) {
  return weir_kernel_choose(c->graph->registry, call, c->kind,
                            c->request->options.ref_kernels, NULL, 0);
}

/* Inputs that no kernel takes in their layout are made plain, all of them:
 * plain operands have the reference kernel at least. */
static weir_status make_inputs_fit(weir_compiler *c, weir_node_id id,
                                   weir_error *err) {
  const weir_node *node = &c->graph->nodes[id];
  weir_call *call = NULL;
  bool special = false;
  for (uint32_t i = 0; i < node->input_count; i++)
    special = special || (node->inputs[i] != WEIR_NO_VALUE &&
                          c->layouts[node->inputs[i]] != WEIR_LAYOUT_PLAIN);
  if (!special) return WEIR_OK;
  WEIR_TRY(weir_compile_call(c, id, node->op, node->attrs, &call, err));
  if (choose_quietly(c, call) != NULL) return WEIR_OK;
  for (uint32_t i = 0; i < node->input_count; i++)
    WEIR_TRY(weir_compile_plain(c, node->inputs[i], err));
  return WEIR_OK;
}

weir_status weir_compile_node(weir_compiler *c, weir_node_id id,
                              weir_error *err) {
  const weir_node *node = &c->graph->nodes[id];
  weir_call *call = NULL;
  WEIR_TRY(make_inputs_fit(c, id, err));
  WEIR_TRY(weir_compile_call(c, id, node->op, node->attrs, &call, err));
  weir_value_id *out =
      weir_arena_array(c->arena, node->output_count, sizeof *out);
  if (out == NULL) return weir_fail_memory(err, sizeof *out);
  for (uint32_t i = 0; i < node->output_count; i++)
    out[i] = made_output(c, node, i);
  weir_emit emit = {.calls = call,
                    .call_count = 1,
                    .node = node,
                    .node_id = id,
                    .in = node->inputs,
                    .in_count = node->input_count,
                    .out = out,
                    .out_count = node->output_count};
  WEIR_TRY(weir_compile_choose(c, &emit, NULL, err));
  return weir_compile_emit(c, &emit, err);
}

/* ---- Groups: several calls, whose operands are inputs of the group or outputs
 * of its calls. |in| holds each input once, found by comparing ids: a group has
 * few nodes, so that is cheaper than a table. */

typedef struct group_parts {
  weir_call *calls;
  weir_group_ref **refs;
  weir_operand *in, *out;
  weir_value_id *in_ids;
  uint32_t *out_calls;
  weir_node_id *members; /* in order */
  uint32_t count, in_count, ref_count;
} group_parts;

/* A group as kernels see it, and the one that takes it. */
typedef struct group_choice {
  group_parts parts;                   /* the lists of |group| */
  weir_group *group;                   /* in the arena: kernels may keep it */
  const weir_group_kernel_def *kernel; /* NULL: none accepts */
  const char *timed;                   /* a word on it; or NULL */
  char refusals[512];                  /* of those before it, by name */
} group_choice;

static bool make_parts(weir_compiler *c, uint32_t group, group_parts *g) {
  for (weir_node_id id = c->group_head[group]; id != WEIR_NO_INDEX;
       id = c->group_next[id]) {
    g->count++;
    g->ref_count += c->graph->nodes[id].input_count;
  }
  g->calls = weir_arena_array(c->arena, g->count, sizeof *g->calls);
  g->refs = weir_arena_array(c->arena, g->count, sizeof *g->refs);
  g->members = weir_arena_array(c->arena, g->count, sizeof *g->members);
  g->in = weir_arena_array(c->arena, g->ref_count, sizeof *g->in);
  g->in_ids = weir_arena_array(c->arena, g->ref_count, sizeof *g->in_ids);
  g->out = weir_arena_array(c->arena, 1, sizeof *g->out);
  g->out_calls = weir_arena_array(c->arena, 1, sizeof *g->out_calls);
  if (g->calls == NULL || g->refs == NULL || g->members == NULL ||
      g->in == NULL || g->in_ids == NULL || g->out == NULL ||
      g->out_calls == NULL)
    return false;
  uint32_t at = g->count; /* the list runs backwards */
  for (weir_node_id id = c->group_head[group]; id != WEIR_NO_INDEX;
       id = c->group_next[id])
    g->members[--at] = id;
  assert(at == 0);
  return true;
}

static weir_group_ref ref_of(const weir_compiler *c, group_parts *g,
                             weir_value_id id, const weir_operand *operand) {
  for (uint32_t m = 0; m < g->count; m++)
    if (id != WEIR_NO_VALUE &&
        c->graph->nodes[g->members[m]].first_output == id)
      return (weir_group_ref){true, m};
  for (uint32_t i = 0; i < g->in_count; i++)
    if (g->in_ids[i] == id) return (weir_group_ref){false, i};
  assert(g->in_count < g->ref_count);
  g->in_ids[g->in_count] = id;
  g->in[g->in_count] = *operand;
  return (weir_group_ref){false, g->in_count++};
}

static weir_status fill_parts(weir_compiler *c, group_parts *g,
                              weir_error *err) {
  for (uint32_t m = 0; m < g->count; m++) {
    const weir_node *node = &c->graph->nodes[g->members[m]];
    weir_call *call = NULL;
    WEIR_TRY(
        weir_compile_call(c, g->members[m], node->op, node->attrs, &call, err));
    g->calls[m] = *call;
    g->refs[m] =
        weir_arena_array(c->arena, node->input_count, sizeof **g->refs);
    if (g->refs[m] == NULL) return weir_fail_memory(err, 0);
    for (uint32_t i = 0; i < node->input_count; i++)
      g->refs[m][i] = ref_of(c, g, node->inputs[i], &call->in[i]);
  }
  g->out[0] = g->calls[g->count - 1].out[0];
  g->out_calls[0] = g->count - 1;
  return WEIR_OK;
}

/* The first group kernel that accepts. */
static void choose_group(const weir_compiler *c, group_choice *out) {
  if (c->request->options.ref_kernels) {
    snprintf(out->refusals, sizeof out->refusals, "reference kernels only; ");
    return;
  }
  for (const weir_registry *r = c->graph->registry; r != NULL; r = r->next)
    for (size_t i = 0; i < r->group_kernel_count; i++) {
      const weir_group_kernel_def *kernel = r->group_kernels[i];
      weir_why why = {""};
      if (kernel->device != c->kind) continue;
      if (weir_group_kernel_accepts(kernel, out->group, &why)) {
        out->kernel = kernel;
        return;
      }
      size_t used = strlen(out->refusals);
      snprintf(out->refusals + used, sizeof out->refusals - used, "%s: %s; ",
               kernel->name, why.text);
    }
}

/* |out| is zero before. */
static weir_status find_group(weir_compiler *c, uint32_t id, group_choice *out,
                              weir_error *err) {
  group_parts *g = &out->parts;
  if (!make_parts(c, id, g)) return weir_fail_memory(err, 0);
  WEIR_TRY(fill_parts(c, g, err));
  out->group = weir_arena_array(c->arena, 1, sizeof *out->group);
  if (out->group == NULL) return weir_fail_memory(err, sizeof *out->group);
  *out->group = (weir_group){.call_count = g->count,
                             .in_count = g->in_count,
                             .out_count = 1,
                             .calls = g->calls,
                             .refs = (const weir_group_ref *const *)g->refs,
                             .in = g->in,
                             .out = g->out,
                             .out_calls = g->out_calls};
  choose_group(c, out);
  if (out->kernel == NULL || !may_be_timed(c, c->kind)) return WEIR_OK;
  return weir_timed_group(c->env, c->graph->registry, !c->sizes_only,
                          out->group, &out->kernel, &out->timed, err);
}

weir_status weir_compile_takes_layouts(weir_compiler *c, weir_node_id id,
                                       bool *out_takes, weir_error *err) {
  const weir_node *node = &c->graph->nodes[id];
  *out_takes = false;
  if (node->group == WEIR_NO_GROUP) {
    weir_call *call = NULL;
    WEIR_TRY(weir_compile_call(c, id, node->op, node->attrs, &call, err));
    const weir_kernel_def *kernel = choose_quietly(c, call);
    *out_takes = kernel != NULL && kernel->layouts;
    return WEIR_OK;
  }
  group_choice choice = {.kernel = NULL};
  WEIR_TRY(find_group(c, node->group, &choice, err));
  *out_takes = choice.kernel != NULL && choice.kernel->layouts;
  return WEIR_OK;
}

weir_status weir_compile_group(weir_compiler *c, uint32_t id, bool *done,
                               const char **reason, weir_error *err) {
  group_choice choice = {.kernel = NULL};
  const group_parts *g = &choice.parts;
  weir_node_id last = c->group_head[id];
  const weir_node *node = &c->graph->nodes[last];
  *done = false;
  WEIR_TRY(find_group(c, id, &choice, err));
  const weir_group_kernel_def *kernel = choice.kernel;
  *reason = keep_reason(c, kernel == NULL ? "group split" : choice.timed,
                        choice.refusals);
  if (kernel == NULL) return WEIR_OK;
  weir_value_id *out = weir_arena_array(c->arena, 1, sizeof *out);
  if (out == NULL) return weir_fail_memory(err, sizeof *out);
  out[0] = node->first_output;
  weir_emit emit = {.calls = g->calls,
                    .call_count = g->count,
                    .node = node,
                    .node_id = last,
                    .in = g->in_ids,
                    .in_count = g->in_count,
                    .out = out,
                    .out_count = 1,
                    .prepared = {.arena = c->arena,
                                 .alloc = c->env->alloc,
                                 .device = weir_compile_device(c),
                                 .tf32 = c->request->options.tf32,
                                 .tuning = weir_compile_tuning(c),
                                 .sizes_only = c->sizes_only},
                    .run = kernel->run,
                    .over_inputs = kernel->over_inputs,
                    .kernel = kernel->name,
                    .reason = *reason};
  /* What is computed now is the host's work, call by call. */
  if (!weir_device_kinds[c->kind]->host && weir_compile_folds(c, &emit))
    return WEIR_OK;
  if (weir_compile_prepares(c, &emit)) {
    weir_status s = prepare_group(c, kernel, choice.group, &emit.prepared, err);
    if (s != WEIR_OK) return blame(node, s, err);
    emit.release = kernel->release;
  }
  *done = true;
  c->group_count++;
  return weir_compile_emit(c, &emit, err);
}
