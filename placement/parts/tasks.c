/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/parts/tasks.h"

#include <assert.h>
#include <stdlib.h>

#include "placement/parts/ring_ranks.h"
#include "runtime/base/map.h"

/* Edges between tasks are the partition's, in its order; ranks of collectives
 * are sorted by group and rank, so that each group's first rank leads, and two
 * edges are added for each rank of another task. */

typedef struct cutter {
  const weir_allocator *alloc;
  weir_task_cut *out;
  const weir_graph *graph;
  weir_task_row *tasks;
  weir_crossing *crossings;
  weir_far_rank *far;
  weir_ring_ranks ranks;
} cutter;

static bool make_tasks(cutter *c) {
  weir_task_cut *out = c->out;
  const weir_partition *p = out->partition;
  const weir_cluster *cluster = out->placement->cluster;
  uint32_t *task =
      weir_arena_array(&out->arena, (size_t)p->part_count + 1, sizeof *task);
  c->tasks = weir_arena_array(&out->arena, (size_t)cluster->task_count + 1,
                              sizeof *c->tasks);
  if (task == NULL || c->tasks == NULL) return false;
  out->task_count = cluster->task_count;
  for (uint32_t i = 0; i < p->part_count; i++) {
    task[i] = cluster->devices[p->parts[i].device].task;
    c->tasks[task[i]].part_count++;
  }
  for (uint32_t i = 0; i < p->order_count; i++) {
    weir_node_id id = p->order[i];
    weir_task_row *row = &c->tasks[task[p->part_of[id]]];
    row->node_count++;
    if (c->graph->nodes[id].op->instr == WEIR_INSTR_VAR_COMMIT)
      row->assigns = true;
  }
  out->part_task = task;
  out->tasks = c->tasks;
  return true;
}

/* ---- Crossings */

static void add_crossing(cutter *c, const weir_crossing *x) {
  weir_task_cut *out = c->out;
  assert(x->from != x->to && x->number >= out->number_count);
  c->crossings[out->crossing_count++] = *x;
  out->number_count = x->number + 1;
  if (x->at_start) return;
  c->tasks[x->from].sent_count++;
  c->tasks[x->to].received_count++;
  c->tasks[x->from].sent_bytes += x->bytes;
  c->tasks[x->to].received_bytes += x->bytes;
}

/* |copied|: per value, whether the problem has a tensor for it. One that has
 * none is a variable that nothing assigns. */
static void add_edges(cutter *c, const bool *copied) {
  const weir_task_cut *out = c->out;
  const weir_partition *p = out->partition;
  for (uint32_t e = 0; e < p->edge_count; e++) {
    const weir_cut_edge *edge = &p->edges[e];
    if (!edge->between_tasks) continue;
    weir_crossing x = {
        .number = e,
        .from = out->part_task[edge->from],
        .to = out->part_task[edge->to],
        .from_part = edge->from,
        .to_part = edge->to,
        .cls = edge->cls,
        .value = edge->value,
        .node = edge->node,
        .bytes = edge->bytes,
        .at_start = edge->value != WEIR_NO_VALUE && !copied[edge->value]};
    add_crossing(c, &x);
  }
}

static int64_t value_bytes(const weir_graph *g, weir_value_id v) {
  return (int64_t)weir_shape_bytes(g->values[v].shape, g->values[v].dtype);
}

/* The two edges of |r|, whose hub is |hub|. */
static void add_far_rank(cutter *c, const weir_ring_rank *r,
                         const weir_ring_rank *hub) {
  weir_task_cut *out = c->out;
  const weir_node *node = &c->graph->nodes[r->node];
  uint32_t number = out->number_count;
  weir_crossing up = {.number = number,
                      .from = out->part_task[r->part],
                      .to = out->part_task[hub->part],
                      .from_part = r->part,
                      .to_part = hub->part,
                      .cls = WEIR_EDGE_COLLECTIVE,
                      .value = node->inputs[0],
                      .node = r->node,
                      .bytes = value_bytes(c->graph, node->inputs[0])};
  weir_crossing down = {.number = number + 1,
                        .from = up.to,
                        .to = up.from,
                        .from_part = up.to_part,
                        .to_part = up.from_part,
                        .cls = WEIR_EDGE_COLLECTIVE,
                        .value = node->first_output,
                        .node = r->node,
                        .bytes = value_bytes(c->graph, node->first_output)};
  add_crossing(c, &up);
  add_crossing(c, &down);
  c->far[out->far_rank_count++] =
      (weir_far_rank){r->node, hub->part, hub->node, number, number + 1};
}

static int by_node(const void *a, const void *b) {
  const weir_far_rank *x = a, *y = b;
  return (x->node > y->node) - (x->node < y->node);
}

static void add_collectives(cutter *c) {
  weir_task_cut *out = c->out;
  const weir_ring_rank *hub = NULL;
  /* Behind all of the partition's, those within a task too. */
  out->number_count = out->partition->edge_count;
  for (size_t i = 0; i < c->ranks.count; i++) {
    const weir_ring_rank *r = &c->ranks.items[i];
    if (hub == NULL || hub->ring.group != r->ring.group) hub = r;
    if (out->part_task[r->part] != out->part_task[hub->part])
      add_far_rank(c, r, hub);
  }
  if (out->far_rank_count > 0)
    qsort(c->far, out->far_rank_count, sizeof *c->far, by_node);
}

static bool make_crossings(cutter *c) {
  weir_task_cut *out = c->out;
  const weir_placement *pl = out->placement;
  if (!weir_ring_ranks_list(c->alloc, c->graph, out->partition, &c->ranks))
    return false;
  size_t most = (size_t)out->partition->edge_count + 2 * c->ranks.count;
  c->crossings = weir_arena_array(&out->arena, most + 1, sizeof *c->crossings);
  c->far = weir_arena_array(&out->arena, c->ranks.count + 1, sizeof *c->far);
  bool *copied = weir_alloc_array(c->alloc, (size_t)c->graph->value_count + 1,
                                  sizeof *copied);
  bool ok = c->crossings != NULL && c->far != NULL && copied != NULL;
  for (uint32_t t = 0; ok && t < pl->problem->tensor_count; t++)
    if (pl->tensor_value[t] != WEIR_NO_VALUE)
      copied[pl->tensor_value[t]] = true;
  if (ok) {
    add_edges(c, copied);
    add_collectives(c);
    out->crossings = c->crossings;
    out->far_ranks = c->far;
  }
  weir_free(c->alloc, copied);
  return ok;
}

weir_status weir_task_cut_create(const weir_allocator *alloc,
                                 const weir_placement *placement,
                                 const weir_partition *partition,
                                 weir_task_cut **out_cut, weir_error *err) {
  *out_cut = NULL;
  weir_task_cut *out = weir_alloc_array(alloc, 1, sizeof *out);
  if (out == NULL) return weir_fail_memory(err, sizeof *out);
  weir_arena_init(&out->arena, alloc);
  out->placement = placement;
  out->partition = partition;
  cutter c = {.alloc = alloc, .out = out, .graph = placement->graph};
  bool ok = make_tasks(&c) && make_crossings(&c);
  weir_vec_free(alloc, &c.ranks);
  if (ok) {
    *out_cut = out;
    return WEIR_OK;
  }
  weir_task_cut_release(out);
  return weir_fail_memory(err, partition->edge_count * sizeof(weir_crossing));
}

void weir_task_cut_release(weir_task_cut *cut) {
  if (cut == NULL) return;
  const weir_allocator *alloc = cut->arena.alloc;
  weir_arena_release(&cut->arena);
  weir_free(alloc, cut);
}

/* ---- Questions */

uint32_t weir_task_of_value(const weir_task_cut *cut, weir_value_id id) {
  uint32_t part =
      cut->partition->part_of[cut->placement->graph->values[id].node];
  return cut->part_task[part == WEIR_PLACE_NONE ? 0 : part];
}

const weir_far_rank *weir_task_far_rank(const weir_task_cut *cut,
                                        weir_node_id id) {
  weir_far_rank key = {.node = id};
  if (cut->far_rank_count == 0) return NULL;
  return bsearch(&key, cut->far_ranks, cut->far_rank_count, sizeof key,
                 by_node);
}

bool weir_task_folds(const weir_node *node, const bool *constant) {
  if (node->op->flags & (WEIR_OP_RANDOM | WEIR_OP_EFFECT)) return false;
  if (node->op->instr != WEIR_INSTR_KERNEL &&
      (node->op->flags & WEIR_OP_VIEW) == 0)
    return false;
  for (uint32_t i = 0; i < node->input_count; i++)
    if (node->inputs[i] != WEIR_NO_VALUE && !constant[node->inputs[i]])
      return false;
  return true;
}

/* Whether |node| makes constants; variables count as such. */
static bool is_constant(const weir_graph *g, const weir_node *node,
                        const bool *constant) {
  return node->op->instr == WEIR_INSTR_CONST ||
         node->op->instr == WEIR_INSTR_VAR_READ ||
         (node->output_count == 1 &&
          g->values[node->first_output].known != NULL) ||
         weir_task_folds(node, constant);
}

/* Readers of the variable need it where they are, and so do the readers of a
 * constant that is computed from it. |reaches|: per value, scratch. */
static void mark_readers(const weir_task_cut *cut, weir_node_id from,
                         bool *constant, bool *reaches, bool *marks) {
  const weir_graph *g = cut->placement->graph;
  for (weir_node_id id = 0; id < g->node_count; id++) {
    const weir_node *node = &g->nodes[id];
    bool same = is_constant(g, node, constant), reads = id == from;
    for (uint32_t i = 0; i < node->input_count && !reads; i++)
      reads = node->inputs[i] != WEIR_NO_VALUE && reaches[node->inputs[i]];
    for (uint32_t i = 0; i < node->output_count; i++) {
      constant[node->first_output + i] = same;
      reaches[node->first_output + i] = same && reads;
    }
    uint32_t part = cut->partition->part_of[id];
    if (reads && part != WEIR_PLACE_NONE) marks[cut->part_task[part]] = true;
  }
}

weir_status weir_task_mark_variable(const weir_task_cut *cut, weir_node_id node,
                                    bool constant, bool *marks,
                                    weir_error *err) {
  const weir_allocator *a = cut->arena.alloc;
  size_t values = cut->placement->graph->value_count;
  uint32_t part = cut->partition->part_of[node];
  for (uint32_t t = 0; t < cut->task_count; t++) marks[t] = false;
  if (part != WEIR_PLACE_NONE) marks[cut->part_task[part]] = true;
  if (!constant) return WEIR_OK;
  bool *reaches = weir_alloc_array(a, values, sizeof *reaches);
  bool *known = weir_alloc_array(a, values, sizeof *known);
  bool ok = reaches != NULL && known != NULL;
  if (ok) mark_readers(cut, node, known, reaches, marks);
  weir_free(a, reaches);
  weir_free(a, known);
  return ok ? WEIR_OK : weir_fail_memory(err, values);
}

static uint64_t mix(uint64_t h, uint64_t x) {
  return weir_hash_bytes(&x, sizeof x, h);
}

uint64_t weir_task_cut_hash(const weir_task_cut *cut) {
  const weir_partition *p = cut->partition;
  uint64_t h = mix(mix(cut->task_count, p->part_count), p->order_count);
  for (uint32_t i = 0; i < p->part_count; i++) {
    h = mix(mix(h, p->parts[i].device), p->parts[i].threads);
    h = weir_hash_bytes(p->parts[i].name.data, p->parts[i].name.size, h);
  }
  for (uint32_t i = 0; i < p->order_count; i++)
    h = mix(mix(h, p->order[i]), p->part_of[p->order[i]]);
  for (uint32_t i = 0; i < p->edge_count; i++) {
    const weir_cut_edge *e = &p->edges[i];
    h = mix(mix(mix(h, e->value), e->node), e->cls);
    h = mix(mix(mix(h, e->from), e->to), (uint64_t)e->bytes);
  }
  for (uint32_t i = 0; i < cut->far_rank_count; i++) {
    const weir_far_rank *r = &cut->far_ranks[i];
    h = mix(mix(mix(mix(h, r->node), r->hub), r->up), r->down);
  }
  return h;
}
