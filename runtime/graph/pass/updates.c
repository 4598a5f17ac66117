/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/pass/updates.h"

#include <assert.h>

#include "runtime/graph/mesh/mesh_ranks.h"
#include "runtime/graph/pass/cut.h"

/* Which `update`s a run carries out: those of variables that some node of the
 * run reads, unless it assigns them otherwise. The inputs of an update may read
 * more variables, so this goes on until nothing is added.
 *
 * A round is one walk from the last node to the first; each round but the last
 * adds an update, so the cost is nodes times the updates that depend on each
 * other. The order of the list follows node ids within a round: the same in
 * every run. */

typedef struct updates {
  const weir_graph *graph;
  const weir_cut_request *request;
  bool *needed, *read, *assigned, *fed; /* by node */
} updates;

static void mark(updates *u, const weir_node_id *extra, uint32_t count) {
  const weir_graph *g = u->graph;
  for (uint32_t k = 0; k < u->request->value_count; k++)
    u->needed[g->values[u->request->values[k]].node] = true;
  for (uint32_t k = 0; k < u->request->node_count; k++)
    u->needed[u->request->nodes[k]] = true;
  for (uint32_t k = 0; k < count; k++) u->needed[extra[k]] = true;
  for (weir_node_id id = g->node_count; id-- > 0;) {
    const weir_node *node = &g->nodes[id];
    if (!u->needed[id] || u->fed[id]) continue;
    if (node->op->instr == WEIR_INSTR_VAR_READ) continue; /* has its value */
    /* Input 0 of an assignment is its variable: written, not read. */
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

/* Writes their ids to |out|, in the order of the rounds; the number of them. */
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

static uint32_t update_count(const weir_cut_request *r) {
  uint32_t count = 0;
  for (weir_node_id id = 0; !r->no_updates && id < r->graph->node_count; id++)
    count += r->graph->nodes[id].update;
  return count;
}

weir_status weir_graph_targets(const weir_cut_request *r,
                               weir_node_id **out_targets, uint32_t *out_count,
                               weir_error *err) {
  const weir_allocator *a = r->graph->alloc;
  uint32_t most = update_count(r), n = r->graph->node_count;
  weir_node_id *targets =
      weir_alloc_array(a, (size_t)r->node_count + most, sizeof *targets);
  *out_targets = targets;
  *out_count = r->node_count;
  if (targets == NULL) return weir_fail_memory(err, most * sizeof *targets);
  for (uint32_t k = 0; k < r->node_count; k++) targets[k] = r->nodes[k];
  if (most == 0) return WEIR_OK;
  bool *flags = weir_alloc_array(a, n, 4 * sizeof *flags);
  if (flags == NULL) return weir_fail_memory(err, 4 * (size_t)n);
  updates u = {r->graph,
               r,
               flags,
               flags + n,
               flags + 2 * (size_t)n,
               flags + 3 * (size_t)n};
  for (uint32_t i = 0; r->fed != NULL && i < r->graph->input_count; i++)
    if (r->fed[i])
      u.fed[r->graph->values[r->graph->inputs[i].value].node] = true;
  *out_count += find(&u, targets + r->node_count);
  assert(*out_count <= r->node_count + most);
  weir_free(a, flags);
  return WEIR_OK;
}

/* ---- Marks */

static bool ends_walk(const weir_node *node) {
  return node->op->instr == WEIR_INSTR_VAR_READ ||
         node->op->instr == WEIR_INSTR_FEED;
}

static weir_status mark_needs(const weir_graph *g, uint8_t *ends, bool *marks,
                              weir_error *err) {
  for (weir_node_id id = 0; id < g->node_count; id++)
    ends[id] = ends_walk(&g->nodes[id]);
  WEIR_TRY(weir_graph_mark_ranks(g, ends, marks, err));
  for (weir_node_id id = g->node_count; id-- > 0;) {
    const weir_node *node = &g->nodes[id];
    if (!marks[id]) continue;
    for (uint32_t i = 0; i < node->after_count; i++)
      marks[node->after[i]] = true;
    for (uint32_t i = 0; !ends[id] && i < node->input_count; i++)
      if (node->inputs[i] != WEIR_NO_VALUE)
        marks[g->values[node->inputs[i]].node] = true;
  }
  return WEIR_OK;
}

weir_status weir_graph_mark_wanted(const weir_cut_request *r, bool *marks,
                                   weir_error *err) {
  const weir_graph *g = r->graph;
  weir_node_id *targets = NULL;
  uint32_t count = 0;
  uint8_t *ends = weir_alloc_array(g->alloc, g->node_count, sizeof *ends);
  if (ends == NULL) return weir_fail_memory(err, g->node_count);
  weir_status s = weir_graph_targets(r, &targets, &count, err);
  if (s == WEIR_OK) {
    for (uint32_t k = 0; k < r->value_count; k++)
      marks[g->values[r->values[k]].node] = true;
    for (uint32_t k = 0; k < count; k++) marks[targets[k]] = true;
    s = mark_needs(g, ends, marks, err);
  }
  weir_free(g->alloc, targets);
  weir_free(g->alloc, ends);
  return s;
}
