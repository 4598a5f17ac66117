/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/parts/partition.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "placement/lower/lower_ring.h"
#include "placement/parts/partition_tokens.h"
#include "runtime/base/table.h"

/* A cut of the graph along the plan: nodes of one device are a part, and every
 * value or token that passes from one part to another is one edge, however many
 * readers it has there. Edges are collected with duplicates and sorted, so that
 * equal ones stand side by side.
 *
 * Cost: O(uses * log uses), no table per pair of parts. */

/* A cut under way. */
typedef struct cutter {
  const weir_allocator *alloc;
  const weir_placement *placement;
  const weir_place_plan *plan;
  const weir_graph *graph;
  weir_partition *out;
  uint32_t *part_of;
  WEIR_VEC(weir_cut_edge) edges;
} cutter;

const char *weir_edge_class_text(weir_edge_class cls) {
  static const char *const texts[] = {[WEIR_EDGE_TENSOR] = "tensor",
                                      [WEIR_EDGE_PULL] = "pull",
                                      [WEIR_EDGE_PUSH] = "push",
                                      [WEIR_EDGE_CONTROL] = "control",
                                      [WEIR_EDGE_COLLECTIVE] = "collective"};
  WEIR_TABLE_OF(texts, WEIR_EDGE_COLLECTIVE + 1);
  return texts[cls];
}

/* ---- Parts */

static bool make_parts(cutter *c) {
  const weir_cluster *cluster = c->placement->cluster;
  weir_arena *arena = &c->out->arena;
  uint32_t units = c->placement->unit_count, count = 0;
  uint32_t number[WEIR_PLACE_DEVICES];
  weir_part *parts =
      weir_arena_array(arena, cluster->device_count, sizeof *parts);
  c->part_of = weir_arena_array(arena, (size_t)c->graph->node_count + 1,
                                sizeof *c->part_of);
  if (parts == NULL || c->part_of == NULL) return false;
  memset(number, 0xff, sizeof number);
  for (uint32_t u = 0; u < units; u++) number[c->plan->device[u]] = 0;
  for (uint32_t d = 0; d < cluster->device_count; d++) {
    if (number[d] == WEIR_PLACE_NONE) continue;
    weir_sv name = cluster->devices[d].text;
    char *text = weir_arena_string(arena, name.data, name.size);
    if (text == NULL) return false;
    number[d] = count;
    parts[count++] = (weir_part){
        .device = d,
        .name = {text, name.size},
        .threads = cluster->classes[cluster->devices[d].cls].threads};
  }
  for (weir_node_id id = 0; id < c->graph->node_count; id++) {
    uint32_t u = c->placement->unit_of[id];
    c->part_of[id] =
        u == WEIR_PLACE_NONE ? WEIR_PLACE_NONE : number[c->plan->device[u]];
  }
  c->out->parts = parts;
  c->out->part_count = count;
  c->out->part_of = c->part_of;
  return true;
}

/* ---- Order */

typedef struct unit_start {
  int64_t start_ns;
  uint32_t lead; /* of units that begin together, the last; else the unit */
  uint32_t unit;
} unit_start;

static int by_start(const void *a, const void *b) {
  const unit_start *x = a, *y = b;
  if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
  if (x->lead != y->lead) return x->lead < y->lead ? -1 : 1;
  return x->unit < y->unit ? -1 : 1;
}

/* A rank of a collective. */
typedef struct rank_unit {
  int64_t group;
  uint32_t unit;
} rank_unit;

static int by_group(const void *a, const void *b) {
  const rank_unit *x = a, *y = b;
  if (x->group != y->group) return x->group < y->group ? -1 : 1;
  return x->unit < y->unit ? -1 : 1;
}

/* The ranks of a collective begin together, when the first of them does: all
 * their inputs are made by then, and so all parts meet in one order. */
static void join_ranks(unit_start *starts, const rank_unit *ranks,
                       uint32_t count) {
  for (uint32_t first = 0, end; first < count; first = end) {
    int64_t start = INT64_MAX;
    for (end = first; end < count && ranks[end].group == ranks[first].group;
         end++)
      if (starts[ranks[end].unit].start_ns < start)
        start = starts[ranks[end].unit].start_ns;
    for (uint32_t i = first; i < end; i++) {
      starts[ranks[i].unit].start_ns = start;
      starts[ranks[i].unit].lead = ranks[end - 1].unit;
    }
  }
}

/* Variables and constants come first: a reader need not wait for them in the
 * plan. A unit that others wait for and that takes no time may
 * begin when they do: its number is smaller. */
static bool make_starts(const cutter *c, unit_start *starts) {
  const weir_placement *p = c->placement;
  rank_unit *ranks =
      weir_alloc_array(c->alloc, (size_t)p->unit_count + 1, sizeof *ranks);
  uint32_t count = 0;
  if (ranks == NULL) return false;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    weir_lower_ring ring;
    const weir_node *node = &c->graph->nodes[p->units[u].node];
    bool first = node->op->instr == WEIR_INSTR_VAR_READ || p->units[u].constant;
    starts[u] = (unit_start){first ? -1 : c->plan->start_ns[u], u, u};
    if (node->op->instr == WEIR_INSTR_COLLECTIVE &&
        weir_lower_ring_of(c->graph, p->units[u].node, &ring))
      ranks[count++] = (rank_unit){ring.group, u};
  }
  qsort(ranks, count, sizeof *ranks, by_group);
  join_ranks(starts, ranks, count);
  weir_free(c->alloc, ranks);
  qsort(starts, p->unit_count, sizeof *starts, by_start);
  return true;
}

static bool make_order(cutter *c) {
  const weir_placement *p = c->placement;
  weir_node_id *order =
      weir_arena_array(&c->out->arena, p->member_total, sizeof *order);
  unit_start *starts =
      weir_alloc_array(c->alloc, (size_t)p->unit_count + 1, sizeof *starts);
  if (order == NULL || starts == NULL || !make_starts(c, starts)) {
    weir_free(c->alloc, starts);
    return false;
  }
  uint32_t at = 0;
  for (uint32_t i = 0; i < p->unit_count; i++) {
    const weir_unit *unit = &p->units[starts[i].unit];
    for (uint32_t m = 0; m < unit->member_count; m++)
      order[at++] = p->members[unit->first_member + m];
  }
  weir_free(c->alloc, starts);
  assert(at == p->member_total);
  c->out->order = order;
  c->out->order_count = at;
  return true;
}

/* ---- Edges */

/* Whether input |i| of |node| brings a variable its update: a gradient, an
 * average's news, a value to assign. The step's settings (learning rate, scale:
 * one number by the op's schema) are no updates. */
static bool is_update(const weir_node *node, uint32_t i) {
  if (node->op->instr == WEIR_INSTR_VAR_COMMIT) return i > 0;
  if (!weir_sv_starts_with(weir_sv_from(node->op->name), "apply_"))
    return false;
  assert(i < WEIR_OP_INPUTS);
  const char *shape = node->op->inputs[i].shape;
  return i > 0 && (shape == NULL || strcmp(shape, "[]") != 0);
}

static int64_t edge_bytes(const weir_graph *g, weir_value_id v) {
  const weir_value *value = &g->values[v];
  return weir_shape_known(value->shape)
             ? (int64_t)weir_shape_bytes(value->shape, value->dtype)
             : 0;
}

static bool joins_tasks(const cutter *c, uint32_t from, uint32_t to) {
  const weir_cluster_device *devices = c->placement->cluster->devices;
  return devices[c->out->parts[from].device].task !=
         devices[c->out->parts[to].device].task;
}

static weir_edge_class class_of(const weir_graph *g, weir_node_id maker,
                                weir_node_id reader, uint32_t input) {
  if (g->nodes[maker].op->instr == WEIR_INSTR_VAR_READ) return WEIR_EDGE_PULL;
  return is_update(&g->nodes[reader], input) ? WEIR_EDGE_PUSH
                                             : WEIR_EDGE_TENSOR;
}

/* |edge| has a value or token and its maker; its way to |reader| is added,
 * unless both are in one part or one is a constant. */
static bool add_edge(cutter *c, weir_cut_edge edge, weir_node_id reader) {
  edge.from = c->part_of[edge.node];
  edge.to = c->part_of[reader];
  if (edge.from == WEIR_PLACE_NONE || edge.to == WEIR_PLACE_NONE ||
      edge.from == edge.to)
    return true;
  assert(edge.from < c->out->part_count && edge.to < c->out->part_count);
  edge.between_tasks = joins_tasks(c, edge.from, edge.to);
  bool local = !edge.between_tasks && edge.cls != WEIR_EDGE_CONTROL;
  if (local) edge.cls = WEIR_EDGE_TENSOR;
  return weir_vec_push(c->alloc, &c->edges, edge);
}

static bool add_input(cutter *c, weir_node_id reader, uint32_t i) {
  const weir_graph *g = c->graph;
  weir_value_id v = g->nodes[reader].inputs[i];
  if (v == WEIR_NO_VALUE) return true;
  assert(v < g->value_count);
  weir_node_id maker = g->values[v].node;
  weir_cut_edge edge = {.value = v,
                        .node = maker,
                        .cls = class_of(g, maker, reader, i),
                        .bytes = edge_bytes(g, v)};
  return add_edge(c, edge, reader);
}

static bool collect_edges(cutter *c) {
  const weir_graph *g = c->graph;
  for (weir_node_id id = 0; id < g->node_count; id++) {
    const weir_node *node = &g->nodes[id];
    for (uint32_t i = 0; i < node->input_count; i++)
      if (!add_input(c, id, i)) return false;
    for (uint32_t i = 0; i < node->after_count; i++) {
      weir_cut_edge token = {.value = WEIR_NO_VALUE,
                             .node = node->after[i],
                             .cls = WEIR_EDGE_CONTROL};
      if (!weir_partition_follows(g, c->part_of, id, node->after[i]) &&
          !add_edge(c, token, id))
        return false;
    }
  }
  return true;
}

static int compare_keys(const weir_cut_edge *x, const weir_cut_edge *y) {
  if (x->value != y->value) return x->value < y->value ? -1 : 1;
  if (x->node != y->node) return x->node < y->node ? -1 : 1;
  return (x->to > y->to) - (x->to < y->to);
}

/* Equal edges: those that are a push for one of their readers come last. */
static int by_key(const void *a, const void *b) {
  const weir_cut_edge *x = a, *y = b;
  int order = compare_keys(x, y);
  return order != 0 ? order : (x->cls > y->cls) - (x->cls < y->cls);
}

/* The place of |key| among |edges|, which are sorted; NONE: it is not there. */
static uint32_t find_key(const weir_cut_edge *edges, uint32_t count,
                         const weir_cut_edge *key) {
  uint32_t low = 0, high = count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    int order = compare_keys(&edges[middle], key);
    if (order == 0) return middle;
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return WEIR_PLACE_NONE;
}

/* Whether one of |edges| brings a value of |token|'s node to the same part:
 * a reader of that value waits for the node already. */
static bool has_value_edge(const weir_graph *g, const weir_cut_edge *edges,
                           uint32_t count, const weir_cut_edge *token) {
  const weir_node *node = &g->nodes[token->node];
  weir_cut_edge key = *token;
  for (uint32_t i = 0; i < node->output_count; i++) {
    key.value = node->first_output + i;
    if (g->values[key.value].known == NULL &&
        find_key(edges, count, &key) != WEIR_PLACE_NONE)
      return true;
  }
  return false;
}

/* Sorts the edges and keeps one of each; tokens stand behind all values, so the
 * values are complete when the first token is looked at. */
static bool keep_edges(cutter *c) {
  uint32_t kept = 0, values = 0;
  weir_cut_edge *items = c->edges.items;
  if (c->edges.count > 0) qsort(items, c->edges.count, sizeof *items, by_key);
  for (size_t i = 0; i < c->edges.count; i++) {
    if (kept > 0 && compare_keys(&items[kept - 1], &items[i]) == 0) continue;
    bool token = items[i].value == WEIR_NO_VALUE;
    if (token && has_value_edge(c->graph, items, values, &items[i])) continue;
    assert(kept <= i && (token || values == kept)); /* tokens come last */
    items[kept++] = items[i];
    if (!token) values = kept;
  }
  weir_cut_edge *edges = weir_arena_array(&c->out->arena, kept, sizeof *edges);
  if (edges == NULL) return false;
  if (kept > 0) memcpy(edges, items, kept * sizeof *edges);
  c->out->edges = edges;
  c->out->edge_count = kept;
  return true;
}

weir_status weir_partition_create(const weir_allocator *alloc,
                                  const weir_placement *placement,
                                  const weir_place_plan *plan,
                                  weir_partition **out_partition,
                                  weir_error *err) {
  *out_partition = NULL;
  weir_partition *out = weir_alloc_array(alloc, 1, sizeof *out);
  if (out == NULL) return weir_fail_memory(err, sizeof *out);
  weir_arena_init(&out->arena, alloc);
  cutter c = {.alloc = alloc,
              .placement = placement,
              .plan = plan,
              .graph = placement->graph,
              .out = out};
  bool ok =
      make_parts(&c) && make_order(&c) && collect_edges(&c) && keep_edges(&c);
  weir_vec_free(alloc, &c.edges);
  if (ok) {
    *out_partition = out;
    return WEIR_OK;
  }
  weir_partition_release(out);
  return weir_fail_memory(err, placement->member_total * sizeof(uint32_t));
}

void weir_partition_release(weir_partition *partition) {
  if (partition == NULL) return;
  const weir_allocator *alloc = partition->arena.alloc;
  weir_arena_release(&partition->arena);
  weir_free(alloc, partition);
}

uint32_t weir_partition_edge(const weir_partition *p, weir_node_id maker,
                             weir_value_id value, uint32_t to) {
  weir_cut_edge key = {.value = value, .node = maker, .to = to};
  return find_key(p->edges, p->edge_count, &key);
}
