/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/compile/compile_needs.h"

#include "runtime/base/map.h"
#include "runtime/exec/compile/compile_emit.h"
#include "runtime/exec/compile/compile_internal.h"
#include "runtime/exec/program/program_held.h"

/* The same walk as a program's, on one device, up to the
 * builder's list of instructions; its sizes are read off. Bodies become
 * programs, whose own memory is planned, as they are part of their node's
 * scratch.
 *
 * A variable that no node of the graph assigns counts as a constant, as in a
 * session of this graph; its bytes are never looked at.
 * Cost: that of compiling without packing, folding and planning. */

typedef struct asker {
  const weir_graph *graph;
  uint32_t threads;
  weir_map assigned; /* variables by name */
} asker;

static bool note_assigned(asker *a) {
  const weir_graph *g = a->graph;
  for (weir_node_id id = 0; id < g->node_count; id++) {
    const weir_node *node = &g->nodes[id];
    if (node->op->instr != WEIR_INSTR_VAR_COMMIT) continue;
    weir_sv name = g->nodes[g->values[node->inputs[0]].node].name;
    if (!weir_map_put(&a->assigned, name, 0, NULL)) return false;
  }
  return true;
}

static const void *constant_of(void *self, weir_sv name, bool bytes) {
  const asker *a = self;
  (void)bytes;
  return weir_map_get(&a->assigned, name) == WEIR_MAP_NONE
             ? weir_compile_no_bytes
             : NULL;
}

/* Constants of bodies that are no values of the graph around them. */
static size_t own_constants(const weir_program *body) {
  size_t bytes = 0;
  for (uint32_t v = 0; v < body->value_count; v++) {
    const weir_pvalue *value = &body->values[v];
    if (value->storage == WEIR_STORAGE_CONST &&
        value->data != weir_compile_no_bytes)
      bytes += value->bytes;
  }
  return bytes;
}

static void read_instr(const weir_instr_spec *s, uint32_t threads,
                       weir_lower_needs *out) {
  size_t scratch = weir_scratch_align(s->scratch_bytes) +
                   threads * weir_scratch_align(s->worker_scratch_bytes);
  size_t kept = weir_instr_kept(s);
  for (uint32_t k = 0; k < s->body_count; k++) {
    scratch += weir_scratch_align(s->bodies[k]->memory_bytes);
    kept += own_constants(s->bodies[k]);
  }
  int64_t *most = &out->scratch_bytes[s->node_order];
  if ((int64_t)scratch > *most) *most = (int64_t)scratch;
  out->kept_bytes[s->node_order] += (int64_t)kept;
}

/* Whether |s| may write over its first input, as far as its own operands go: a
 * feed, a variable's value or an output too, which on other devices than its
 * own are values like any other. */
static bool may_take_over(const weir_pvalue *items, const weir_instr_spec *s) {
  if (!s->in_place || s->in_count == 0 || s->out_count == 0 ||
      s->in[0] == WEIR_NO_INDEX || s->out[0] == WEIR_NO_INDEX)
    return false;
  uint32_t x = s->in[0], y = s->out[0];
  for (uint32_t k = 1; k < s->in_count; k++)
    if (s->in[k] != WEIR_NO_INDEX && items[s->in[k]].root == x) return false;
  return items[x].root == x && items[x].storage != WEIR_STORAGE_CONST &&
         items[y].root == y && items[y].storage != WEIR_STORAGE_CONST &&
         items[x].bytes == items[y].bytes;
}

static void read_reuse(const weir_compiler *c, const weir_instr_spec *s,
                       weir_lower_needs *out) {
  const weir_pvalue *items = c->builder->values.items;
  const weir_node *node = &c->graph->nodes[s->node_order];
  if (!may_take_over(items, s)) return;
  for (uint32_t i = 0; i < node->input_count; i++) {
    weir_value_id v = node->inputs[i];
    if (v == WEIR_NO_VALUE || c->values[v] != s->in[0]) continue;
    out->reused[s->node_order] = v;
    out->reused_bytes[s->node_order] = (int64_t)items[s->in[0]].bytes;
  }
}

/* |c->values| are numbers of the builder's list. */
static void read_sizes(const weir_compiler *c, weir_lower_needs *out) {
  uint32_t threads = (uint32_t)c->request->options.threads;
  const weir_pvalue *items = c->builder->values.items;
  for (size_t i = 0; i < c->builder->instrs.count; i++) {
    read_instr(&c->builder->instrs.items[i].spec, threads, out);
    read_reuse(c, &c->builder->instrs.items[i].spec, out);
  }
  for (weir_value_id v = 0; v < c->graph->value_count; v++) {
    uint32_t value = c->values[v];
    out->constant[v] = c->frozen[v];
    if (value == WEIR_NO_INDEX || items[value].root != value) continue;
    if (items[value].storage == WEIR_STORAGE_TEMP)
      out->value_bytes[v] = (int64_t)weir_scratch_align(items[value].bytes);
  }
}

static weir_status ask(const weir_env *env, asker *a, weir_lower_needs *out,
                       weir_error *err) {
  const weir_graph *g = a->graph;
  weir_value_id *ids = weir_alloc_array(
      env->alloc, (size_t)g->input_count + g->output_count, sizeof *ids);
  if (ids == NULL || !note_assigned(a)) {
    weir_free(env->alloc, ids);
    return weir_fail_memory(err, g->node_count * sizeof *ids);
  }
  for (uint32_t i = 0; i < g->input_count; i++) ids[i] = g->inputs[i].value;
  for (uint32_t i = 0; i < g->output_count; i++)
    ids[g->input_count + i] = g->outputs[i].value;
  weir_compile_request request = {.graph = g,
                                  .feeds = ids,
                                  .fetches = ids + g->input_count,
                                  .feed_count = g->input_count,
                                  .fetch_count = g->output_count,
                                  .constant_var = constant_of,
                                  .constant_self = a,
                                  .options = {.threads = (int)a->threads}};
  weir_compiler c = {.env = env,
                     .request = &request,
                     .graph = g,
                     .feeds = ids,
                     .fetches = request.fetches};
  weir_status s = weir_compile_sizes(&c, err);
  if (s == WEIR_OK) read_sizes(&c, out);
  weir_program_builder_release(c.builder);
  weir_free(env->alloc, ids);
  return s;
}

weir_status weir_compile_needs(const void *self, const weir_graph *graph,
                               uint32_t threads, weir_lower_needs *out,
                               weir_error *err) {
  const weir_env *env = self;
  asker a = {.graph = graph, .threads = threads};
  weir_map_init(&a.assigned, env->alloc);
  weir_status s = ask(env, &a, out, err);
  weir_map_release(&a.assigned);
  return s;
}
