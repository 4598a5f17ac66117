/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/graph.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/graph/graph_internal.h"
#include "runtime/graph/load/sources.h"
#include "runtime/graph/names.h"

/* A graph does not change once it is finished, so any thread may read it; only
 * the count of references is atomic. A derived graph holds its parent, whose
 * text and attributes it borrows. Taking a reference orders nothing, hence
 * relaxed; giving one back must order all reads before the release by the last
 * holder, hence acquire and release.
 *
 * A graph that only derived ones hold lends nothing but its arena and what
 * hangs on it: nobody can ask for its nodes any more, and a chain of passes
 * over a large graph would keep them all. So the last holder who is no derived
 * graph drops its tables, before giving up the reference that keeps others from
 * freeing the rest. |children| goes up after |refs| and down before it, so a
 * count read between the two never looks like the last holder's. */

weir_graph *weir_graph_ref(const weir_graph *graph) {
  weir_graph *g = (weir_graph *)(uintptr_t)graph;
  if (g != NULL) atomic_fetch_add_explicit(&g->refs, 1, memory_order_relaxed);
  return g;
}

static void drop_tables(weir_graph_full *graph) {
  const weir_allocator *alloc = graph->g.alloc;
  weir_vec_free(alloc, &graph->nodes);
  weir_vec_free(alloc, &graph->values);
  weir_vec_free(alloc, &graph->inputs);
  weir_vec_free(alloc, &graph->outputs);
  weir_free(alloc, graph->names.slots);
  graph->names = (weir_name_table){0};
  weir_map_release(&graph->value_names);
  weir_graph_sync(graph);
}

static void destroy(weir_graph_full *graph) {
  const weir_allocator *alloc = graph->g.alloc;
  const weir_registry *registry = graph->g.registry;
  drop_tables(graph);
  for (size_t i = 0; i < graph->tensors.count; i++)
    weir_tensor_unref(graph->tensors.items[i]);
  weir_vec_free(alloc, &graph->tensors);
  for (size_t i = 0; i < graph->bodies.count; i++)
    weir_graph_unref(graph->bodies.items[i]);
  weir_vec_free(alloc, &graph->bodies);
  weir_vec_free(alloc, &graph->symbols);
  weir_arena_release(&graph->g.arena);
  weir_source_keeper_release(graph->keeper); /* weights are closed by it */
  weir_free(alloc, graph);
  if (registry->drop != NULL) registry->drop(registry); /* ops of the nodes */
}

/* A chain of derived graphs is let go in a loop, not by recursion; bodies are
 * nested at most WEIR_BODY_DEPTH deep. */
void weir_graph_unref(const weir_graph *graph) {
  while (graph != NULL) {
    weir_graph_full *full = (weir_graph_full *)(uintptr_t)graph;
    int refs = atomic_load_explicit(&full->g.refs, memory_order_acquire);
    if (refs > 1 && refs == atomic_load(&full->children) + 1) drop_tables(full);
    if (atomic_fetch_sub_explicit(&full->g.refs, 1, memory_order_acq_rel) != 1)
      return;
    weir_graph_full *parent = (weir_graph_full *)(uintptr_t)full->parent;
    destroy(full);
    if (parent != NULL) atomic_fetch_sub(&parent->children, 1);
    graph = parent != NULL ? &parent->g : NULL;
  }
}

void weir_graph_sync(weir_graph_full *f) {
  weir_graph *g = &f->g;
  g->nodes = f->nodes.items;
  g->values = f->values.items;
  g->inputs = f->inputs.items;
  g->outputs = f->outputs.items;
  g->symbols = f->symbols.items;
  g->node_count = (uint32_t)f->nodes.count;
  g->value_count = (uint32_t)f->values.count;
  g->input_count = (uint32_t)f->inputs.count;
  g->output_count = (uint32_t)f->outputs.count;
  g->symbol_count = (uint32_t)f->symbols.count;
}

weir_node_id weir_graph_find_node(const weir_graph *graph, weir_sv name) {
  return weir_names_find(&weir_graph_full_of(graph)->names, graph->nodes, name,
                         weir_hash_bytes(name.data, name.size, graph->seed));
}

/* "n:1": the output of a node by number. */
static weir_value_id find_port(const weir_graph *graph, weir_sv name) {
  size_t colon = name.size;
  while (colon > 0 && name.data[colon - 1] != ':') colon--;
  if (colon == 0 || name.size - colon > 9 || name.size == colon)
    return WEIR_NO_VALUE;
  uint32_t port = 0;
  for (size_t i = colon; i < name.size; i++) {
    if (name.data[i] < '0' || name.data[i] > '9') return WEIR_NO_VALUE;
    port = port * 10 + (uint32_t)(name.data[i] - '0');
  }
  weir_node_id id =
      weir_graph_find_node(graph, (weir_sv){name.data, colon - 1});
  if (id == UINT32_MAX || port >= graph->nodes[id].output_count)
    return WEIR_NO_VALUE;
  return graph->nodes[id].first_output + port;
}

weir_value_id weir_graph_find_value(const weir_graph *graph, weir_sv name) {
  uint32_t value = weir_map_get(&weir_graph_full_of(graph)->value_names, name);
  if (value != WEIR_MAP_NONE) return value;
  weir_node_id id = weir_graph_find_node(graph, name);
  if (id == UINT32_MAX) return find_port(graph, name);
  const weir_node *node = &graph->nodes[id];
  return node->output_count > 0 ? node->first_output : WEIR_NO_VALUE;
}

static const char *symbol_name(const void *self, uint32_t symbol) {
  const weir_graph *graph = self;
  return symbol < graph->symbol_count ? graph->symbols[symbol] : "?";
}

char *weir_graph_type_text(const weir_graph *graph, weir_value_id id,
                           char *text, size_t capacity) {
  const weir_value *value = &graph->values[id];
  int n = snprintf(text, capacity, "%s", weir_dtype_name(value->dtype));
  if (n > 0 && (size_t)n < capacity)
    weir_shape_print(value->shape, symbol_name, graph, text + n,
                     capacity - (size_t)n);
  return text;
}

const char *weir_value_label(const weir_graph *graph, weir_value_id id,
                             char *text, size_t capacity) {
  const weir_value *value = &graph->values[id];
  weir_sv name = graph->nodes[value->node].name;
  if (value->port == 0)
    snprintf(text, capacity, "%.*s", WEIR_SV(name));
  else
    snprintf(text, capacity, "%.*s:%" PRIu32, WEIR_SV(name), value->port);
  return text;
}

bool weir_graph_operand(const weir_graph *graph, weir_value_id value,
                        weir_operand *out) {
  memset(out, 0, sizeof *out);
  if (value == WEIR_NO_VALUE) return true;
  const weir_value *v = &graph->values[value];
  if (!weir_shape_known(v->shape)) return false;
  out->dtype = v->dtype;
  out->rank = v->shape->rank;
  for (int32_t d = 0; d < out->rank; d++)
    out->dims[d] = v->shape->dims[d].value;
  out->elements = weir_shape_elements(v->shape);
  return true;
}
