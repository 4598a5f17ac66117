/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/mesh/mesh_ranks.h"

/* Which nodes of collectives are needed because others are: the smallest set
 * that is closed under inputs, control predecessors and groups.
 *
 * A round closes the set under inputs in one walk, then adds the missing ranks
 * of groups that it touches. Each round but the last adds ranks, so there are
 * at most as many as groups that need each other in a chain. Graphs without
 * collectives pay one look at each node. */

static bool is_collective(const weir_node *node) {
  return node->op->instr == WEIR_INSTR_COLLECTIVE;
}

static int64_t group_of(const weir_node *node) {
  return node->attrs[weir_op_attr_index(node->op, WEIR_SV_LIT("group"))].i;
}

/* |need| becomes closed under inputs and control predecessors. */
static void close(const weir_graph *g, const uint8_t *stop, bool *need) {
  for (weir_node_id id = g->node_count; id-- > 0;) {
    const weir_node *node = &g->nodes[id];
    if (!need[id]) continue;
    for (uint32_t i = 0; i < node->after_count; i++)
      need[node->after[i]] = true;
    if (stop != NULL && stop[id] == 1) continue;
    for (uint32_t i = 0; i < node->input_count; i++)
      if (node->inputs[i] != WEIR_NO_VALUE)
        need[g->values[node->inputs[i]].node] = true;
  }
}

/* One more round: true when a rank was added. */
static bool add_ranks(const weir_graph *g, const uint8_t *stop, bool *need,
                      bool *groups) {
  bool more = false;
  close(g, stop, need);
  for (weir_node_id id = 0; id < g->node_count; id++)
    if (need[id] && is_collective(&g->nodes[id]))
      groups[group_of(&g->nodes[id])] = true;
  for (weir_node_id id = 0; id < g->node_count; id++) {
    const weir_node *node = &g->nodes[id];
    if (need[id] || !is_collective(node) || !groups[group_of(node)]) continue;
    more = need[id] = true;
  }
  return more;
}

weir_status weir_graph_mark_ranks(const weir_graph *g, const uint8_t *stop,
                                  bool *needed, weir_error *err) {
  int64_t count = 0;
  for (weir_node_id id = 0; id < g->node_count; id++)
    if (is_collective(&g->nodes[id]) && group_of(&g->nodes[id]) >= count)
      count = group_of(&g->nodes[id]) + 1;
  if (count == 0) return WEIR_OK;
  bool *need = weir_alloc_array(g->alloc, g->node_count, sizeof *need);
  /* Groups are numbered from 0 without gaps (mesh_move.c): a table by number.
   */
  bool *groups = weir_alloc_array(g->alloc, (size_t)count, sizeof *groups);
  weir_status s = WEIR_OK;
  if (need == NULL || groups == NULL)
    s = weir_fail_memory(err, (size_t)count + g->node_count);
  for (weir_node_id id = 0; s == WEIR_OK && id < g->node_count; id++)
    need[id] = needed[id];
  while (s == WEIR_OK && add_ranks(g, stop, need, groups)) continue;
  for (weir_node_id id = 0; s == WEIR_OK && id < g->node_count; id++)
    if (need[id] && is_collective(&g->nodes[id])) needed[id] = true;
  weir_free(g->alloc, need);
  weir_free(g->alloc, groups);
  return s;
}
