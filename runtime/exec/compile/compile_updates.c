/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/compile/compile_internal.h"

/* Which `update`s a run carries out: those of variables that some node of the
 * run reads, unless it assigns them otherwise. What an update needs may read
 * more variables, so this goes on until nothing is added. */

typedef struct updates {
  const weir_graph *graph;
  const weir_compile_request *request;
  bool *needed, *read, *assigned, *fed; /* by node */
} updates;

static void mark(updates *u, const weir_node_id *extra, uint32_t count) {
  const weir_graph *g = u->graph;
  for (uint32_t k = 0; k < u->request->fetch_count; k++)
    u->needed[g->values[u->request->fetches[k]].node] = true;
  for (uint32_t k = 0; k < u->request->target_count; k++)
    u->needed[u->request->targets[k]] = true;
  for (uint32_t k = 0; k < count; k++) u->needed[extra[k]] = true;
  for (weir_node_id id = g->node_count; id-- > 0;) {
    const weir_node *node = &g->nodes[id];
    if (!u->needed[id] || u->fed[id]) continue;
    if (node->op->instr == WEIR_INSTR_VAR_READ) continue;
    bool commit = node->op->instr == WEIR_INSTR_VAR_COMMIT;
    if (commit) u->assigned[g->values[node->inputs[0]].node] = true;
    for (uint32_t i = 0; i < node->after_count; i++)
      u->needed[node->after[i]] = true;
    for (uint32_t i = 0; i < node->input_count; i++) {
      if (node->inputs[i] == WEIR_NO_VALUE) continue;
      weir_node_id from = g->values[node->inputs[i]].node;
      u->needed[from] = true;
      if (!commit || i > 0) u->read[from] = true;
    }
  }
}

static bool due(const updates *u, weir_node_id id) {
  const weir_node *node = &u->graph->nodes[id];
  if (!node->update || u->needed[id]) return false;
  weir_node_id var = u->graph->values[node->inputs[0]].node;
  return u->read[var] && !u->assigned[var];
}

/* Writes their ids to |out|, in order of what is found; the number of them. */
static uint32_t find(updates *u, weir_node_id *out) {
  uint32_t count = 0, before;
  do {
    before = count;
    mark(u, out, count);
    for (weir_node_id id = 0; id < u->graph->node_count; id++)
      if (due(u, id)) out[count++] = id;
  } while (count > before);
  return count;
}

static uint32_t update_count(const weir_compile_request *r) {
  uint32_t count = 0;
  for (weir_node_id id = 0; !r->no_updates && id < r->graph->node_count; id++)
    count += r->graph->nodes[id].update;
  return count;
}

weir_status weir_compile_targets(weir_compiler *c, weir_node_id **out_targets,
                                 uint32_t *out_count, weir_error *err) {
  const weir_compile_request *r = c->request;
  const weir_allocator *a = c->env->alloc;
  uint32_t most = update_count(r), n = r->graph->node_count;
  weir_node_id *targets =
      weir_alloc_array(a, (size_t)r->target_count + most, sizeof *targets);
  *out_targets = targets;
  *out_count = r->target_count;
  if (targets == NULL) return weir_fail_memory(err, most * sizeof *targets);
  for (uint32_t k = 0; k < r->target_count; k++) targets[k] = r->targets[k];
  if (most == 0) return WEIR_OK;
  bool *flags = weir_alloc_array(a, n, 4 * sizeof *flags);
  if (flags == NULL) return weir_fail_memory(err, 4 * (size_t)n);
  updates u = {r->graph,
               r,
               flags,
               flags + n,
               flags + 2 * (size_t)n,
               flags + 3 * (size_t)n};
  for (uint32_t k = 0; k < r->feed_count; k++)
    u.fed[r->graph->values[r->feeds[k]].node] = true;
  *out_count += find(&u, targets + r->target_count);
  weir_free(a, flags);
  return WEIR_OK;
}
