/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/compile/compile_share.h"

#include <assert.h>

#include "runtime/exec/program/instr_comm.h"

/* A process that owns some tasks walks over the whole graph, as every other
 * process does: groups, kernels, layouts and folding are those of one process,
 * and so are the bits. In a part of another process nothing is prepared, packed
 * or added: its values get numbers, and that is all.
 *
 * A constant is computed in every process whose nodes read it, by the same
 * kernel from the same bytes. Which these are is found before the walk, as a
 * superset: forward over the nodes, the values that may turn out constant; then
 * backward, those among them that a node of this process needs, itself or
 * through others. The rest of the constants are known to be constant, which
 * decides kernels, and have no bytes here.
 *
 * Invariant: whether a value that a node of this process reads or waits for is
 * constant is found out by computing it here, so both ends of an edge agree
 * whether it is sent. Cost: O(values + uses). */

/* Whether the outputs of |node| may be constant. */
static bool may_be_constant(const weir_compiler *c, const weir_node *node,
                            const bool *constant) {
  const weir_compile_request *r = c->request;
  if (node->output_count == 1 &&
      c->graph->values[node->first_output].known != NULL)
    return true;
  if (node->op->instr == WEIR_INSTR_CONST) return true;
  if (node->op->instr == WEIR_INSTR_VAR_READ)
    return r->constant_var != NULL &&
           r->constant_var(r->constant_self, node->name, false) != NULL;
  return weir_task_folds(node, constant);
}

static bool is_own(const weir_compiler *c, weir_node_id id) {
  uint32_t part = c->partition->part_of[id];
  return part != WEIR_PLACE_NONE && c->own[part];
}

static void need_outputs(const weir_compiler *c, weir_node_id id) {
  const weir_node *node = &c->graph->nodes[id];
  for (uint32_t i = 0; i < node->output_count; i++)
    c->bytes_here[node->first_output + i] = true;
}

/* |constant|: per value, scratch. */
static void mark_bytes(const weir_compiler *c, bool *constant) {
  const weir_graph *g = c->graph;
  for (weir_node_id id = 0; id < g->node_count; id++) {
    const weir_node *node = &g->nodes[id];
    bool may = c->needed[id] && may_be_constant(c, node, constant);
    for (uint32_t i = 0; i < node->output_count; i++)
      constant[node->first_output + i] = may;
  }
  for (uint32_t k = 0; c->own[0] && k < c->request->fetch_count; k++)
    c->bytes_here[c->fetches[k]] = true; /* a constant is the first part's */
  for (weir_node_id id = g->node_count; id-- > 0;) {
    const weir_node *node = &g->nodes[id];
    bool own = is_own(c, id), here = own;
    for (uint32_t i = 0; i < node->output_count && !here; i++)
      here = constant[node->first_output + i] &&
             c->bytes_here[node->first_output + i];
    if (!here) continue;
    for (uint32_t i = 0; i < node->input_count; i++)
      if (node->inputs[i] != WEIR_NO_VALUE)
        c->bytes_here[node->inputs[i]] = true;
    for (uint32_t i = 0; i < node->after_count && own; i++)
      need_outputs(c, node->after[i]);
  }
}

static void find_own(weir_compiler *c, bool *own) {
  const weir_cluster *cluster = c->request->plan->placement->cluster;
  c->head = UINT32_MAX;
  for (uint32_t p = 0; p < c->partition->part_count; p++) {
    uint32_t task = cluster->devices[c->partition->parts[p].device].task;
    own[p] = c->request->tasks[task];
    if (own[p] && c->head == UINT32_MAX) c->head = p;
  }
  if (c->head == UINT32_MAX) c->head = 0;
  c->own = own;
}

weir_status weir_compile_share_begin(weir_compiler *c, weir_error *err) {
  size_t values = c->graph->value_count;
  if (c->request->tasks == NULL) return WEIR_OK;
  WEIR_TRY(weir_task_cut_create(c->env->alloc, c->request->plan->placement,
                                c->partition, &c->tasks, err));
  bool *own = weir_arena_array(c->arena, c->partition->part_count, sizeof *own);
  c->bytes_here = weir_arena_array(c->arena, values, sizeof *c->bytes_here);
  bool *constant = weir_alloc_array(c->env->alloc, values, sizeof *constant);
  bool ok = own != NULL && c->bytes_here != NULL && constant != NULL;
  if (ok) {
    find_own(c, own);
    mark_bytes(c, constant);
  }
  weir_free(c->env->alloc, constant);
  return ok ? WEIR_OK : weir_fail_memory(err, values);
}

bool weir_compile_needs_bytes(const weir_compiler *c, const weir_emit *e) {
  bool needed = !c->elsewhere;
  for (uint32_t i = 0; i < e->out_count && !needed; i++)
    needed = e->out[i] != WEIR_NO_VALUE && c->bytes_here[e->out[i]];
  return needed;
}

uint32_t weir_compile_add_instr(weir_compiler *c, const weir_instr_spec *spec) {
  assert(!c->elsewhere || (spec->release == NULL && spec->body_count == 0));
  return c->elsewhere ? 0 : weir_program_add_instr(c->builder, spec);
}

/* Whether one end belongs to another process. */
static bool leaves(const weir_compiler *c, const weir_compile_way *way) {
  return c->own != NULL && !(c->own[way->from] && c->own[way->to]);
}

weir_status weir_compile_send(const weir_compiler *c,
                              weir_program_builder *builder,
                              const weir_compile_way *way, size_t bytes,
                              weir_instr_spec *spec) {
  spec->kernel = "send";
  return weir_instr_send(builder, NULL, leaves(c, way), way->edge, bytes, spec);
}

weir_status weir_compile_recv(const weir_compiler *c,
                              weir_program_builder *builder,
                              const weir_compile_way *way, size_t bytes,
                              weir_instr_spec *spec) {
  spec->kernel = "recv";
  return weir_instr_recv(builder, NULL, leaves(c, way), way->edge, bytes, spec);
}
