/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/parts/partition_tokens.h"

/* A token is a message without bytes: it costs the latency of a link and the
 * sender's and receiver's time. `after: [m]` needs none where a chain of values
 * leads from m to the node, for every value of the chain is awaited already.
 *
 * The chain is searched backwards from the node, breadth first, among the nodes
 * that stand behind m (numbers are topological, so a smaller one cannot come
 * from m). The search gives up after LOOKED nodes: then a token is sent that
 * was not needed, which is harmless. So the time is bounded for each token.
 *
 * Only computed values count, no constants and no `after` on the way: a node
 * that has nothing else is folded when the graph is compiled, and nothing waits
 * then. */

enum { LOOKED = 64 };

typedef struct search {
  weir_node_id seen[LOOKED];
  uint32_t count;
} search;

static void look_at(search *s, weir_node_id id) {
  for (uint32_t i = 0; i < s->count; i++)
    if (s->seen[i] == id) return;
  if (s->count < LOOKED) s->seen[s->count++] = id;
}

bool weir_partition_follows(const weir_graph *g, const uint32_t *part_of,
                            weir_node_id node, weir_node_id maker) {
  search s = {.seen = {node}, .count = 1};
  for (uint32_t at = 0; at < s.count; at++) {
    const weir_node *n = &g->nodes[s.seen[at]];
    for (uint32_t i = 0; i < n->input_count; i++) {
      weir_value_id v = n->inputs[i];
      if (v == WEIR_NO_VALUE || g->values[v].known != NULL) continue;
      weir_node_id from = g->values[v].node;
      if (from == maker) return true;
      if (from > maker && part_of[from] != WEIR_PLACE_NONE) look_at(&s, from);
    }
  }
  return false;
}
