/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/train/train_recompute.h"

#include <assert.h>
#include <stdio.h>

#include "runtime/base/map.h"
#include "runtime/graph/graph_internal.h"
#include "runtime/graph/node.h"
#include "runtime/graph/pass/pass.h"
#include "runtime/graph/pattern.h"

/* Memory for time: values inside of a segment are dropped after the forward
 * part and computed again from the segment's borders when the backward part
 * first reads one. A clone has its original's seed, so that dropout draws the
 * same numbers, and is anchored to the backward part, since a clone without
 * inputs from there could be done at once and keep the memory that it is to
 * save.
 *
 * Invariant: forward nodes are copied unchanged, so a graph without segments is
 * itself. Each inside node is cloned at most once, before its first reader in
 * the backward part. Cost: at most one node more for each forward node; in a
 * step, at most one forward part more. */

typedef struct recompute {
  weir_pass pass;
  uint32_t base_nodes;
  uint32_t *segments;   /* by forward node: its segment from 1; 0: none */
  bool *again;          /* by forward node: inside of a segment */
  weir_node_id *clones; /* by forward node: in the new graph, or UINT32_MAX */
  weir_map names;       /* of segments */
  weir_node_id newest;  /* backward kernel copied last, in the new graph */
  WEIR_VEC(weir_node_id) todo;
  weir_error *err;
} recompute;

/* ---- Inside of segments */

/* A twin belongs to the segment of its original. */
static weir_sv own_name(const weir_node *node) {
  const size_t prefix = sizeof "training/" - 1;
  weir_sv name = node->name;
  if (!weir_sv_starts_with(name, "training/")) return name;
  return (weir_sv){name.data + prefix, name.size - prefix};
}

static bool can_repeat(const weir_node *node) {
  return node->op->instr == WEIR_INSTR_KERNEL &&
         (node->op->flags & WEIR_OP_EFFECT) == 0;
}

static weir_status name_segments(recompute *r,
                                 const weir_train_patterns *patterns) {
  for (uint32_t id = 0; id < r->base_nodes; id++) {
    const weir_node *node = &r->pass.from->nodes[id];
    weir_sv segment = {NULL, 0};
    for (uint32_t i = 0; i < patterns->count; i++) {
      const weir_train_pattern *p = &patterns->items[i];
      weir_sv found = weir_segment_of(p->text, own_name(node));
      if (found.size > 0) segment = p->value != 0 ? found : (weir_sv){NULL, 0};
    }
    if (segment.size == 0) continue;
    uint32_t before, next = (uint32_t)r->names.count + 1;
    if (!weir_map_put(&r->names, segment, next, &before))
      return weir_fail_memory(r->err, sizeof next);
    r->segments[id] = before != WEIR_MAP_NONE ? before : next;
    r->again[id] = can_repeat(node);
  }
  return WEIR_OK;
}

/* A segment's value that is read outside of it, in the forward part, is kept.
 */
static void keep_borders(recompute *r) {
  const weir_graph *g = r->pass.from;
  for (uint32_t id = 0; id < r->base_nodes; id++)
    for (uint32_t i = 0; i < g->nodes[id].input_count; i++) {
      if (g->nodes[id].inputs[i] == WEIR_NO_VALUE) continue;
      weir_node_id from = g->values[g->nodes[id].inputs[i]].node;
      if (r->segments[from] != r->segments[id]) r->again[from] = false;
    }
}

/* ---- Copies */

/* The forward node that input |i| wants computed again, or UINT32_MAX. */
static weir_node_id wanted(const recompute *r, const weir_node *node,
                           uint32_t i) {
  if (node->inputs[i] == WEIR_NO_VALUE) return UINT32_MAX;
  weir_node_id from = r->pass.from->values[node->inputs[i]].node;
  return from < r->base_nodes && r->again[from] ? from : UINT32_MAX;
}

/* Copies |id|, whose inputs have been copied. One that begins a segment waits
 * for |anchor|, so that it is neither done early nor merged with its original.
 */
static weir_status clone(recompute *r, weir_node_id id, weir_node_id anchor) {
  const weir_node *node = &r->pass.from->nodes[id];
  const weir_allocator *alloc = r->pass.alloc;
  weir_graph_builder *builder = r->pass.builder;
  char text[400];
  int cut = (int)(node->name.size < 256 ? node->name.size : 256);
  int size = snprintf(text, sizeof text, "again/%.*s", cut, node->name.data);
  weir_value_id *in = weir_alloc_array(alloc, node->input_count, sizeof *in);
  char *name =
      weir_arena_string(weir_graph_builder_arena(builder), text, (size_t)size);
  bool first = true;
  if (in == NULL || name == NULL) {
    weir_free(alloc, in);
    return weir_fail_memory(r->err, sizeof text);
  }
  for (uint32_t i = 0; i < node->input_count; i++) {
    weir_node_id from = wanted(r, node, i);
    in[i] = node->inputs[i];
    if (from == UINT32_MAX) continue;
    assert(r->clones[from] != UINT32_MAX);
    first = false;
    in[i] = weir_graph_builder_output(builder, r->clones[from],
                                      r->pass.from->values[in[i]].port);
  }
  weir_node_spec spec = {.name = {name, (size_t)size},
                         .op = node->op,
                         .attrs = node->attrs,
                         .inputs = in,
                         .after = &anchor,
                         .input_count = node->input_count,
                         .after_count = first && anchor != UINT32_MAX,
                         .device = node->device,
                         .mark = node->mark,
                         .has_seed = true,
                         .seed = node->seed,
                         .bodies = node->bodies,
                         .body_count = node->body_count};
  weir_status s = weir_graph_builder_add(builder, &spec, &r->clones[id], NULL);
  if (s != WEIR_OK) *r->err = builder->diag.error;
  weir_free(alloc, in);
  return s;
}

/* Clones |id| and the inside nodes that it needs, these first. A node may be on
 * the stack twice; it is cloned when it is on top for the first time with all
 * inputs done. */
static weir_status clone_all(recompute *r, weir_node_id id,
                             weir_node_id anchor) {
  assert(id < r->base_nodes && r->again[id]);
  r->todo.count = 0;
  if (!weir_vec_push(r->pass.alloc, &r->todo, id))
    return weir_fail_memory(r->err, sizeof id);
  while (r->todo.count > 0) {
    weir_node_id top = r->todo.items[r->todo.count - 1];
    const weir_node *node = &r->pass.from->nodes[top];
    size_t before = r->todo.count;
    for (uint32_t i = 0; i < node->input_count; i++) {
      weir_node_id from = wanted(r, node, i);
      if (from == UINT32_MAX || r->clones[from] != UINT32_MAX) continue;
      if (!weir_vec_push(r->pass.alloc, &r->todo, from))
        return weir_fail_memory(r->err, sizeof id);
    }
    if (r->todo.count > before) continue;
    r->todo.count--;
    if (r->clones[top] == UINT32_MAX) WEIR_TRY(clone(r, top, anchor));
  }
  return WEIR_OK;
}

/* The latest node of the backward part that |node| reads, else the newest of
 * all, in the new graph. */
static weir_node_id anchor_of(const recompute *r, const weir_node *node) {
  const weir_graph *g = r->pass.from;
  weir_node_id latest = UINT32_MAX;
  for (uint32_t i = 0; i < node->input_count; i++) {
    if (node->inputs[i] == WEIR_NO_VALUE) continue;
    weir_node_id from = g->values[node->inputs[i]].node;
    if (from < r->base_nodes) continue;
    from = r->pass.nodes[from];
    if (latest == UINT32_MAX || from > latest) latest = from;
  }
  return latest != UINT32_MAX ? latest : r->newest;
}

/* Copies a node of the backward part; its forward inputs are the new ones. */
static weir_status backward(recompute *r, weir_node_id id) {
  const weir_node *node = &r->pass.from->nodes[id];
  weir_node_id anchor = anchor_of(r, node);
  for (uint32_t i = 0; i < node->input_count; i++) {
    weir_node_id from = wanted(r, node, i);
    weir_value_id value = node->inputs[i];
    if (from == UINT32_MAX) continue;
    if (r->clones[from] == UINT32_MAX) WEIR_TRY(clone_all(r, from, anchor));
    r->pass.values[value] = weir_graph_builder_output(
        r->pass.builder, r->clones[from], r->pass.from->values[value].port);
  }
  WEIR_TRY(weir_pass_copy(&r->pass, id, NULL, UINT32_MAX, r->err));
  /* The map leads to clones during this copy only: names and outputs of the
   * graph must lead to the forward values. */
  for (uint32_t i = 0; i < node->input_count; i++)
    if (wanted(r, node, i) != UINT32_MAX)
      r->pass.values[node->inputs[i]] = node->inputs[i];
  if (node->op->instr == WEIR_INSTR_KERNEL) r->newest = r->pass.nodes[id];
  return WEIR_OK;
}

static weir_status run(recompute *r, const weir_train_patterns *patterns,
                       weir_value_id *values, size_t count) {
  const weir_graph *g = r->pass.from;
  for (uint32_t i = 0; i < r->base_nodes; i++) r->clones[i] = UINT32_MAX;
  WEIR_TRY(name_segments(r, patterns));
  keep_borders(r);
  for (uint32_t id = 0; id < r->base_nodes; id++)
    WEIR_TRY(weir_pass_copy(&r->pass, id, NULL, UINT32_MAX, r->err));
  assert(r->base_nodes == 0 ||
         r->pass.nodes[r->base_nodes - 1] == r->base_nodes - 1);
  for (uint32_t id = r->base_nodes; id < g->node_count; id++)
    WEIR_TRY(backward(r, id));
  for (size_t i = 0; i < count; i++) values[i] = r->pass.values[values[i]];
  return WEIR_OK;
}

weir_status weir_train_recompute(const weir_graph *graph, uint32_t base_nodes,
                                 const weir_train_patterns *patterns,
                                 weir_value_id *values, size_t count,
                                 weir_graph **out_graph, weir_error *err) {
  const weir_allocator *alloc = graph->alloc;
  recompute r = {.base_nodes = base_nodes, .newest = UINT32_MAX, .err = err};
  weir_map_init(&r.names, alloc);
  r.segments = weir_alloc_array(alloc, base_nodes, sizeof *r.segments);
  r.again = weir_alloc_array(alloc, base_nodes, sizeof *r.again);
  r.clones = weir_alloc_array(alloc, base_nodes, sizeof *r.clones);
  weir_status s = weir_pass_begin(&r.pass, graph, err);
  if (s == WEIR_OK && (!r.segments || !r.again || !r.clones))
    s = weir_fail_memory(err, base_nodes * sizeof *r.clones);
  if (s == WEIR_OK) s = run(&r, patterns, values, count);
  s = weir_pass_end(&r.pass, s, out_graph, err);
  weir_map_release(&r.names);
  weir_vec_free(alloc, &r.todo);
  weir_free(alloc, r.segments);
  weir_free(alloc, r.again);
  weir_free(alloc, r.clones);
  return s;
}
