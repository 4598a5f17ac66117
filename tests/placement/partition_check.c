/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/placement/partition_check.h"

#include "placement/parts/partition.h"

/* The parts joined again: does the graph come out? Edges are listed by the node
 * that makes them, so that the time is linear in the graph however they are
 * ordered: an order is nothing that a check may rely on. */

typedef struct joiner {
  const weir_graph *graph;
  const weir_partition *p;
  uint32_t *position; /* per node: in the order + 1; 0: a constant */
  bool *used;         /* per edge */
  uint32_t *first;    /* per node: its edges are [n]..[n + 1] of |by_maker| */
  uint32_t *by_maker;
  /* Of a search: nodes to look at, and per node the search that saw it. */
  weir_node_id *queue;
  uint32_t *seen, stamp;
  weir_error *err;
} joiner;

static weir_status broken(const joiner *j, const weir_node *node,
                          const char *what) {
  return weir_fail(j->err, WEIR_W3016, NULL, "the partition at %.*s: %s",
                   WEIR_SV(node->name), what);
}

static weir_status list_edges(joiner *j) {
  const weir_partition *p = j->p;
  uint32_t nodes = j->graph->node_count;
  for (uint32_t e = 0; e < p->edge_count; e++) {
    const weir_cut_edge *edge = &p->edges[e];
    if (edge->node >= nodes || edge->to >= p->part_count)
      return weir_fail(j->err, WEIR_W3016, NULL,
                       "the partition: edge %u has no node or no part", e);
    j->first[edge->node + 2]++;
  }
  for (uint32_t n = 2; n < nodes + 2; n++) j->first[n] += j->first[n - 1];
  for (uint32_t e = 0; e < p->edge_count; e++)
    j->by_maker[j->first[p->edges[e].node + 1]++] = e;
  return WEIR_OK;
}

static weir_status check_order(joiner *j) {
  const weir_graph *g = j->graph;
  for (uint32_t i = 0; i < j->p->order_count; i++) {
    weir_node_id id = j->p->order[i];
    const weir_node *node = &g->nodes[id];
    if (j->position[id] != 0) return broken(j, node, "it is there twice");
    j->position[id] = i + 1;
    if (j->p->part_of[id] >= j->p->part_count)
      return broken(j, node, "it is in no part");
  }
  for (weir_node_id id = 0; id < g->node_count; id++)
    if ((j->position[id] == 0) != (j->p->part_of[id] == WEIR_PLACE_NONE))
      return broken(j, &g->nodes[id], "it is left out of the order");
  return WEIR_OK;
}

/* Marks the edges that bring |value| of |maker| to part |to|, and counts them;
 * |*from_there|: all begin at the maker's part. */
static uint32_t count_edges(joiner *j, weir_node_id maker, weir_value_id value,
                            uint32_t to, bool *from_there) {
  uint32_t found = 0;
  for (uint32_t i = j->first[maker]; i < j->first[maker + 1]; i++) {
    const weir_cut_edge *edge = &j->p->edges[j->by_maker[i]];
    if (edge->value != value || edge->to != to) continue;
    *from_there = *from_there && edge->from == j->p->part_of[maker];
    j->used[j->by_maker[i]] = true;
    found++;
  }
  return found;
}

static bool is_computed(const weir_graph *g, weir_value_id v) {
  return v != WEIR_NO_VALUE && g->values[v].known == NULL;
}

/* Whether |node| waits for |maker| without a token: a value of it comes to the
 * node's part, or the node's inputs are made of it. */
static bool waits_anyway(joiner *j, weir_node_id id, weir_node_id maker) {
  const weir_graph *g = j->graph;
  uint32_t count = 1;
  for (uint32_t i = j->first[maker]; i < j->first[maker + 1]; i++) {
    const weir_cut_edge *edge = &j->p->edges[j->by_maker[i]];
    if (edge->to == j->p->part_of[id] && is_computed(g, edge->value))
      return true;
  }
  j->stamp++; /* no node is seen */
  j->queue[0] = id;
  for (uint32_t at = 0; at < count; at++) {
    const weir_node *node = &g->nodes[j->queue[at]];
    for (uint32_t i = 0; i < node->input_count; i++) {
      if (!is_computed(g, node->inputs[i])) continue;
      weir_node_id from = g->values[node->inputs[i]].node;
      if (from == maker) return true;
      if (j->seen[from] == j->stamp || j->position[from] == 0) continue;
      j->seen[from] = j->stamp;
      if (j->position[from] > j->position[maker]) j->queue[count++] = from;
    }
  }
  return false;
}

/* |node| needs |value| (NO_VALUE: its token) of |maker|. */
static weir_status check_need(joiner *j, weir_node_id id, weir_node_id maker,
                              weir_value_id value) {
  const weir_partition *p = j->p;
  const weir_node *node = &j->graph->nodes[id];
  uint32_t from = p->part_of[maker], to = p->part_of[id];
  bool from_there = true;
  if (from == WEIR_PLACE_NONE || to == WEIR_PLACE_NONE) return WEIR_OK;
  if (j->position[maker] >= j->position[id])
    return broken(j, node, "it begins before its inputs are there");
  uint32_t found = count_edges(j, maker, value, to, &from_there);
  if (!from_there) return broken(j, node, "an edge has another start");
  if (found == (from == to ? 0u : 1u)) return WEIR_OK;
  if (found == 0 && value == WEIR_NO_VALUE && waits_anyway(j, id, maker))
    return WEIR_OK;
  return broken(j, node, "an edge to it is missing or there twice");
}

static weir_status check_node(joiner *j, weir_node_id id) {
  const weir_graph *g = j->graph;
  const weir_node *node = &g->nodes[id];
  for (uint32_t i = 0; i < node->input_count; i++) {
    weir_value_id v = node->inputs[i];
    if (v != WEIR_NO_VALUE) WEIR_TRY(check_need(j, id, g->values[v].node, v));
  }
  for (uint32_t i = 0; i < node->after_count; i++)
    WEIR_TRY(check_need(j, id, node->after[i], WEIR_NO_VALUE));
  return WEIR_OK;
}

static weir_status check_all(joiner *j) {
  WEIR_TRY(check_order(j));
  WEIR_TRY(list_edges(j));
  for (weir_node_id id = 0; id < j->graph->node_count; id++)
    WEIR_TRY(check_node(j, id));
  for (uint32_t e = 0; e < j->p->edge_count; e++)
    if (!j->used[e])
      return broken(j, &j->graph->nodes[j->p->edges[e].node],
                    "an edge from it has no reader");
  return WEIR_OK;
}

weir_status weir_partition_check(const weir_graph *graph,
                                 const weir_partition *partition,
                                 weir_error *err) {
  const weir_allocator *a = graph->alloc;
  joiner j = {.graph = graph, .p = partition, .err = err};
  j.position =
      weir_alloc_array(a, (size_t)graph->node_count + 1, sizeof *j.position);
  j.used =
      weir_alloc_array(a, (size_t)partition->edge_count + 1, sizeof *j.used);
  j.first = weir_alloc_array(a, (size_t)graph->node_count + 2, sizeof *j.first);
  j.by_maker = weir_alloc_array(a, (size_t)partition->edge_count + 1,
                                sizeof *j.by_maker);
  j.queue = weir_alloc_array(a, (size_t)graph->node_count + 1, sizeof *j.queue);
  j.seen = weir_alloc_array(a, (size_t)graph->node_count + 1, sizeof *j.seen);
  weir_status s = j.position == NULL || j.used == NULL || j.first == NULL ||
                          j.by_maker == NULL || j.queue == NULL ||
                          j.seen == NULL
                      ? weir_fail_memory(err, graph->node_count)
                      : check_all(&j);
  weir_free(a, j.position);
  weir_free(a, j.used);
  weir_free(a, j.first);
  weir_free(a, j.by_maker);
  weir_free(a, j.queue);
  weir_free(a, j.seen);
  return s;
}
