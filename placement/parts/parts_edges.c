/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/parts/parts_edges.h"

#include <assert.h>
#include <stdlib.h>

#include "placement/parts/ring_ranks.h"
#include "placement/parts/tasks.h"
#include "runtime/base/size.h"

/* Edges with their readers. A walk over the graph notes (edge, reader) for
 * every use across parts; sorted by edge, without repetitions, the notes are
 * the readers' lists of all edges one behind the other. An edge exists because
 * a use needs it, so a list is never empty. */

typedef struct use {
  uint32_t edge;
  weir_node_id reader;
} use;

typedef struct lister {
  weir_parts_maker *m;
  WEIR_VEC(use) uses;
  weir_ring_ranks ranks;
  weir_parts_edge *edges;
  weir_node_id *readers;
  uint32_t edge_count, reader_count;
} lister;

/* ---- Readers of edges */

static bool note_use(lister *l, weir_node_id from, weir_value_id value,
                     weir_node_id reader) {
  const weir_partition *cut = l->m->cut;
  uint32_t here = cut->part_of[reader], there = cut->part_of[from];
  if (here == WEIR_PLACE_NONE || there == WEIR_PLACE_NONE || here == there)
    return true;
  use u = {weir_partition_edge(cut, from, value, here), reader};
  if (u.edge == WEIR_PLACE_NONE) return true; /* a value stands for the token */
  return weir_vec_push(l->m->alloc, &l->uses, u);
}

static bool note_all(lister *l) {
  const weir_graph *g = l->m->graph;
  for (weir_node_id id = 0; id < g->node_count; id++) {
    const weir_node *node = &g->nodes[id];
    for (uint32_t i = 0; i < node->input_count; i++) {
      weir_value_id v = node->inputs[i];
      if (v != WEIR_NO_VALUE && !note_use(l, g->values[v].node, v, id))
        return false;
    }
    for (uint32_t i = 0; i < node->after_count; i++)
      if (!note_use(l, node->after[i], WEIR_NO_VALUE, id)) return false;
  }
  return weir_ring_ranks_list(l->m->alloc, g, l->m->cut, &l->ranks);
}

static int by_edge(const void *a, const void *b) {
  const use *x = a, *y = b;
  if (x->edge != y->edge) return x->edge < y->edge ? -1 : 1;
  return (x->reader > y->reader) - (x->reader < y->reader);
}

/* ---- Rows */

static void add_readers(lister *l) {
  const use *last = NULL;
  for (size_t i = 0; i < l->uses.count; i++) {
    const use *u = &l->uses.items[i];
    weir_parts_edge *edge = &l->edges[u->edge];
    if (last != NULL && by_edge(last, u) == 0) continue; /* reads it twice */
    last = u;
    if (edge->reader_count == 0) edge->readers = &l->readers[l->reader_count];
    l->readers[l->reader_count++] = u->reader;
    edge->reader_count++;
  }
}

/* A value that a plan copies has a tensor in the problem. A variable that
 * nothing assigns has none: its readers are compiled with its value. */
static void mark_at_start(lister *l, bool *copied) {
  const weir_placement *p = l->m->placement;
  for (uint32_t t = 0; t < p->problem->tensor_count; t++)
    if (p->tensor_value[t] != WEIR_NO_VALUE) copied[p->tensor_value[t]] = true;
  for (uint32_t e = 0; e < l->edge_count; e++) {
    weir_parts_edge *edge = &l->edges[e];
    edge->at_start = edge->value != WEIR_NO_VALUE && !copied[edge->value];
  }
}

/* The row of a rank that sends |bytes| of |value| to node |to|. */
static void add_rank_edge(lister *l, const weir_parts_edge *edge,
                          weir_node_id to) {
  l->readers[l->reader_count] = to;
  l->edges[l->edge_count] = *edge;
  l->edges[l->edge_count].cls = WEIR_EDGE_COLLECTIVE;
  l->edges[l->edge_count].readers = &l->readers[l->reader_count];
  l->edges[l->edge_count++].reader_count = 1;
  l->reader_count++;
}

/* Ranks of other tasks than their first one send to it and get its answer: as
 * the tasks will do it, under the same numbers (tasks.h). */
static void add_far_ranks(lister *l, const weir_task_cut *tasks) {
  for (uint32_t i = 0; i < tasks->crossing_count; i++) {
    const weir_crossing *x = &tasks->crossings[i];
    weir_lower_ring ring;
    if (x->cls != WEIR_EDGE_COLLECTIVE ||
        !weir_lower_ring_of(l->m->graph, x->node, &ring))
      continue;
    const weir_far_rank *far = weir_task_far_rank(tasks, x->node);
    bool up = x->number == far->up;
    assert(x->number == l->edge_count);
    weir_parts_edge edge = {.between_tasks = true,
                            .value = x->value,
                            .node = up ? far->node : far->hub_node,
                            .from = x->from_part,
                            .to = x->to_part,
                            .bytes = x->bytes,
                            .group = (uint32_t)ring.group,
                            .rank = up ? (uint32_t)ring.rank : 0,
                            .ranks = (uint32_t)ring.ranks};
    add_rank_edge(l, &edge, up ? far->hub_node : far->node);
  }
}

/* The edge from rank |from| to the next one of its group, |to|. */
static void add_ring_edge(lister *l, const weir_ring_rank *from,
                          const weir_ring_rank *to) {
  if (from->part == to->part) return;
  weir_parts_edge edge = {.value = l->m->graph->nodes[from->node].first_output,
                          .node = from->node,
                          .from = from->part,
                          .to = to->part,
                          .bytes = from->ring.turns * from->ring.part_bytes,
                          .group = (uint32_t)from->ring.group,
                          .rank = (uint32_t)from->ring.rank,
                          .ranks = (uint32_t)from->ring.ranks};
  add_rank_edge(l, &edge, to->node);
}

/* Groups within one task, as rings. */
static void add_rings(lister *l, const weir_task_cut *tasks) {
  const weir_ring_rank *all = l->ranks.items;
  for (size_t first = 0, end; first < l->ranks.count; first = end) {
    bool far = false;
    for (end = first;
         end < l->ranks.count && all[end].ring.group == all[first].ring.group;
         end++)
      far = far || weir_task_far_rank(tasks, all[end].node) != NULL;
    for (size_t i = first; i < end && !far; i++)
      add_ring_edge(l, &all[i], &all[i + 1 < end ? i + 1 : first]);
  }
}

static bool make_rows(lister *l) {
  const weir_partition *cut = l->m->cut;
  size_t edges = (size_t)cut->edge_count + 2 * l->ranks.count;
  size_t readers = l->uses.count + 2 * l->ranks.count;
  weir_task_cut *tasks = NULL;
  l->edges = weir_arena_array(l->m->arena, edges + 1, sizeof *l->edges);
  l->readers = weir_arena_array(l->m->arena, readers + 1, sizeof *l->readers);
  bool *copied = weir_alloc_array(
      l->m->alloc, (size_t)l->m->graph->value_count + 1, sizeof *copied);
  bool ok = l->edges != NULL && l->readers != NULL && copied != NULL &&
            weir_task_cut_create(l->m->alloc, l->m->placement, cut, &tasks,
                                 NULL) == WEIR_OK;
  for (uint32_t e = 0; ok && e < cut->edge_count; e++) {
    const weir_cut_edge *c = &cut->edges[e];
    l->edges[l->edge_count++] =
        (weir_parts_edge){.cls = c->cls,
                          .between_tasks = c->between_tasks,
                          .value = c->value,
                          .node = c->node,
                          .from = c->from,
                          .to = c->to,
                          .bytes = c->bytes};
  }
  if (ok) {
    add_readers(l);
    mark_at_start(l, copied);
    add_far_ranks(l, tasks);
    add_rings(l, tasks);
  }
  weir_task_cut_release(tasks);
  weir_free(l->m->alloc, copied);
  return ok;
}

/* ---- Each part's edges, and sums */

/* The numbers of the edges that end (|received|) or begin at each part. */
static bool deal_edges(lister *l, bool received) {
  weir_parts_maker *m = l->m;
  uint32_t parts = m->cut->part_count, total = 0;
  uint32_t *rows =
      weir_arena_array(m->arena, (size_t)l->edge_count + 1, sizeof *rows);
  uint32_t *at = weir_alloc_array(m->alloc, (size_t)parts + 1, sizeof *at);
  bool ok = rows != NULL && at != NULL;
  for (uint32_t e = 0; ok && e < l->edge_count; e++)
    at[received ? l->edges[e].to : l->edges[e].from]++;
  for (uint32_t p = 0; ok && p < parts; p++) {
    weir_parts_part *part = &m->parts[p];
    *(received ? &part->received : &part->sent) = rows + total;
    *(received ? &part->received_count : &part->sent_count) = at[p];
    total += at[p];
    at[p] = total - at[p];
  }
  for (uint32_t e = 0; ok && e < l->edge_count; e++)
    rows[at[received ? l->edges[e].to : l->edges[e].from]++] = e;
  weir_free(m->alloc, at);
  return ok;
}

static int by_link(const void *a, const void *b) {
  const weir_parts_link *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  return (x->to > y->to) - (x->to < y->to);
}

/* A link for each edge, sorted, those of the same parts made one. */
static bool add_up(lister *l) {
  weir_parts_maker *m = l->m;
  weir_parts_link *links =
      weir_arena_array(m->arena, (size_t)l->edge_count + 1, sizeof *links);
  uint32_t count = 0, kept = 0;
  if (links == NULL) return false;
  for (uint32_t e = 0; e < l->edge_count; e++) {
    const weir_parts_edge *edge = &l->edges[e];
    if (edge->at_start) continue;
    links[count++] = (weir_parts_link){edge->from, edge->to,
                                       edge->between_tasks, 1, edge->bytes};
    weir_sum_add(&m->parts[edge->from].sent_bytes, edge->bytes);
    weir_sum_add(&m->parts[edge->to].received_bytes, edge->bytes);
  }
  qsort(links, count, sizeof *links, by_link);
  for (uint32_t i = 0; i < count; i++) {
    if (kept > 0 && by_link(&links[kept - 1], &links[i]) == 0) {
      links[kept - 1].edge_count++;
      weir_sum_add(&links[kept - 1].bytes, links[i].bytes);
    } else {
      links[kept++] = links[i];
    }
  }
  m->out->links = links;
  m->out->link_count = kept;
  return true;
}

bool weir_parts_list_edges(weir_parts_maker *m) {
  lister l = {.m = m};
  bool ok = note_all(&l);
  if (ok && l.uses.count > 0)
    qsort(l.uses.items, l.uses.count, sizeof *l.uses.items, by_edge);
  ok = ok && make_rows(&l) && deal_edges(&l, true) && deal_edges(&l, false) &&
       add_up(&l);
  weir_vec_free(m->alloc, &l.uses);
  weir_vec_free(m->alloc, &l.ranks);
  m->out->edges = l.edges;
  m->out->edge_count = l.edge_count;
  return ok;
}
