/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/builder.h"

#include <assert.h>
#include <string.h>

#include "runtime/graph/graph_internal.h"
#include "runtime/graph/names.h"

/* A graph in the making. Nodes, values and ports grow in vectors, which may
 * move; weir_graph_sync points the public fields at them after each change, so
 * readers of the graph so far need no other interface. Text, attributes and
 * shapes lie in the graph's arena and stay where they are. */

weir_status weir_graph_builder_create(const weir_allocator *alloc,
                                      const weir_registry *registry,
                                      uint64_t seed,
                                      weir_graph_builder **out_builder,
                                      weir_error *err) {
  *out_builder = NULL;
  weir_graph_builder *b = weir_alloc_array(alloc, 1, sizeof *b);
  weir_graph_full *graph = weir_alloc_array(alloc, 1, sizeof *graph);
  if (b == NULL || graph == NULL) {
    weir_free(alloc, b);
    weir_free(alloc, graph);
    return weir_fail_memory(err, sizeof *b + sizeof *graph);
  }
  b->alloc = alloc;
  b->graph = graph;
  weir_arena_init(&b->scratch, alloc);
  weir_map_init(&b->symbols, alloc);
  atomic_init(&graph->g.refs, 1);
  graph->g.alloc = alloc;
  graph->g.registry = registry;
  if (registry->hold != NULL) registry->hold(registry);
  graph->g.seed = seed;
  weir_arena_init(&graph->g.arena, alloc);
  weir_map_init(&graph->value_names, alloc);
  *out_builder = b;
  if (weir_vec_push(alloc, &graph->symbols, "")) { /* symbol 0: none */
    weir_graph_sync(graph);
    return WEIR_OK;
  }
  weir_graph_builder_release(b);
  *out_builder = NULL;
  return weir_fail_memory(err, sizeof(char *));
}

/* Symbols keep their numbers: attributes and shapes borrowed from the parent
 * mean the same in the new graph. */
static bool copy_symbols(weir_graph_builder *b, const weir_graph *parent) {
  for (uint32_t i = 1; i < parent->symbol_count; i++)
    if (!weir_vec_push(b->alloc, &b->graph->symbols, parent->symbols[i]))
      return false;
  return true;
}

weir_status weir_graph_builder_derive(const weir_graph *parent,
                                      weir_graph_builder **out_builder,
                                      weir_error *err) {
  weir_status s = weir_graph_builder_create(parent->alloc, parent->registry,
                                            parent->seed, out_builder, err);
  if (s != WEIR_OK) return s;
  weir_graph_builder *b = *out_builder;
  weir_graph_full *full = b->graph;
  full->parent = weir_graph_ref(parent);
  atomic_fetch_add(&((weir_graph_full *)(uintptr_t)parent)->children, 1);
  full->g.file = parent->file;
  full->g.source = parent->source;
  full->g.cluster = parent->cluster;
  full->g.placement = parent->placement;
  full->g.data = parent->data;
  full->g.train = parent->train;
  full->g.mesh = parent->mesh;
  full->g.params = parent->params;
  full->g.param_count = parent->param_count;
  full->g.weights = parent->weights;
  full->g.weight_count = parent->weight_count;
  full->g.labels = parent->labels;
  full->g.label_count = parent->label_count;
  full->g.group_count = 0;
  if (copy_symbols(b, parent)) {
    weir_graph_sync(full);
    return WEIR_OK;
  }
  weir_graph_builder_release(b);
  *out_builder = NULL;
  return weir_fail_memory(err, parent->symbol_count * sizeof(char *));
}

/* Symbols are numbered by the outermost builder; a body's list follows, so a
 * number means the same dimension in a body and around it, and shapes can be
 * compared across. */
static weir_graph_builder *outermost(weir_graph_builder *b) {
  while (b->outer != NULL) b = b->outer;
  return b;
}

bool weir_graph_builder_follow(weir_graph_builder *b) {
  if (b->outer == NULL) return true;
  const weir_graph_full *from = outermost(b)->graph;
  for (size_t i = b->graph->symbols.count; i < from->symbols.count; i++)
    if (!weir_vec_push(b->alloc, &b->graph->symbols, from->symbols.items[i]))
      return false;
  weir_graph_sync(b->graph);
  return true;
}

weir_status weir_graph_builder_body(weir_graph_builder *outer,
                                    const weir_graph *parent,
                                    weir_graph_builder **out_builder,
                                    weir_error *err) {
  const weir_graph *g = &outer->graph->g;
  WEIR_TRY(parent != NULL
               ? weir_graph_builder_derive(parent, out_builder, err)
               : weir_graph_builder_create(outer->alloc, g->registry, g->seed,
                                           out_builder, err));
  weir_graph_builder *b = *out_builder;
  b->outer = outer;
  b->graph->g.file = g->file;
  b->graph->g.source = g->source;
  if (weir_graph_builder_follow(b)) return WEIR_OK;
  weir_graph_builder_release(b);
  *out_builder = NULL;
  return weir_fail_memory(err, g->symbol_count * sizeof(char *));
}

void weir_graph_builder_release(weir_graph_builder *b) {
  if (b == NULL) return;
  weir_graph_unref(b->graph != NULL ? &b->graph->g : NULL);
  weir_free(b->alloc, (void *)b->shapes.slots);
  weir_map_release(&b->symbols);
  weir_vec_free(b->alloc, &b->outs);
  weir_arena_release(&b->scratch);
  weir_free(b->alloc, b);
}

weir_status weir_graph_builder_reserve(weir_graph_builder *b, uint32_t nodes,
                                       weir_error *err) {
  weir_graph_full *g = b->graph;
  if (nodes <= g->nodes.count) return WEIR_OK;
  uint32_t extra = nodes - (uint32_t)g->nodes.count;
  if (!weir_vec_reserve(b->alloc, &g->nodes, extra) ||
      !weir_vec_reserve(b->alloc, &g->values, extra) ||
      !weir_names_reserve(b->alloc, &g->names, nodes))
    return weir_fail_memory(err, extra * sizeof(weir_node));
  weir_graph_sync(g);
  return WEIR_OK;
}

weir_arena *weir_graph_builder_arena(weir_graph_builder *b) {
  return &b->graph->g.arena;
}

weir_graph *weir_graph_builder_graph(weir_graph_builder *b) {
  return &b->graph->g;
}

weir_value_id weir_graph_builder_output(const weir_graph_builder *b,
                                        weir_node_id node, uint32_t i) {
  assert(node < b->graph->nodes.count);
  return b->graph->nodes.items[node].first_output + i;
}

bool weir_graph_builder_has_name(const weir_graph_builder *b, weir_sv name) {
  return weir_graph_find_node(&b->graph->g, name) != UINT32_MAX;
}

uint32_t weir_graph_builder_symbol(weir_graph_builder *b, weir_sv name) {
  if (b->outer != NULL) {
    uint32_t made = weir_graph_builder_symbol(outermost(b), name);
    return weir_graph_builder_follow(b) ? made : 0;
  }
  uint32_t symbol = weir_map_get(&b->symbols, name);
  if (symbol != WEIR_MAP_NONE) return symbol;
  symbol = (uint32_t)b->graph->symbols.count;
  assert(symbol > 0); /* 0 is no symbol */
  char *copy = weir_arena_string(&b->graph->g.arena, name.data, name.size);
  if (copy == NULL ||
      !weir_map_put(&b->symbols, (weir_sv){copy, name.size}, symbol, NULL))
    return 0;
  if (!weir_vec_push(b->alloc, &b->graph->symbols, copy)) return 0;
  weir_graph_sync(b->graph);
  return symbol;
}

uint32_t weir_graph_builder_new_symbol(weir_graph_builder *b) {
  weir_graph_builder *from = outermost(b);
  uint32_t symbol = (uint32_t)from->graph->symbols.count;
  if (!weir_vec_push(from->alloc, &from->graph->symbols, "?")) return 0;
  weir_graph_sync(from->graph);
  return weir_graph_builder_follow(b) ? symbol : 0;
}

weir_status weir_graph_builder_name_value(weir_graph_builder *b, weir_sv name,
                                          weir_value_id value,
                                          weir_error *err) {
  return weir_map_put(&b->graph->value_names, name, value, NULL)
             ? WEIR_OK
             : weir_fail_memory(err, sizeof(weir_map_slot));
}

weir_status weir_graph_builder_add_input(weir_graph_builder *b,
                                         const weir_graph_port *port,
                                         weir_error *err) {
  if (!weir_vec_push(b->alloc, &b->graph->inputs, *port))
    return weir_fail_memory(err, sizeof *port);
  weir_graph_sync(b->graph);
  return weir_graph_builder_name_value(b, port->name, port->value, err);
}

weir_status weir_graph_builder_add_output(weir_graph_builder *b,
                                          const weir_graph_port *port,
                                          weir_error *err) {
  if (!weir_vec_push(b->alloc, &b->graph->outputs, *port))
    return weir_fail_memory(err, sizeof *port);
  weir_graph_sync(b->graph);
  return weir_graph_builder_name_value(b, port->name, port->value, err);
}

weir_status weir_graph_builder_finish(weir_graph_builder *b,
                                      weir_graph **out_graph, weir_error *err) {
  *out_graph = NULL;
  if (b->graph == NULL)
    return weir_fail(err, WEIR_W9001, NULL, "the graph was handed over before");
  weir_graph_sync(b->graph);
  *out_graph = &b->graph->g;
  b->graph = NULL;
  return WEIR_OK;
}
