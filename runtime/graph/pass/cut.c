/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/pass/cut.h"

#include <string.h>

#include "runtime/base/map.h"
#include "runtime/graph/hash.h"
#include "runtime/graph/pass/pass_attention.h"
#include "runtime/graph/pass/pass_fuse.h"
#include "runtime/graph/pass/pass_norm.h"
#include "runtime/graph/pass/pass_simplify.h"
#include "runtime/graph/pass/pass_specialize.h"
#include "runtime/graph/pass/updates.h"

/* Targets (updates.c), simplify, attend, fold_norms, fuse, in this order:
 * updates must be targets before nodes without a reader go, and the others
 * depend on the readers of a value. Fusing keeps ids, hence the maps of those
 * before it are those of the whole cut. */

/* One cut under way. */
typedef struct cutter {
  const weir_cut_request *request;
  const weir_allocator *alloc;
  weir_cut *out;
  weir_node_id *targets; /* ids of the old graph */
  weir_node_id *nodes;   /* per old node: its new id */
} cutter;

static weir_status make_room(cutter *c, weir_error *err) {
  const weir_cut_request *r = c->request;
  const weir_graph *g = r->graph;
  weir_cut *out = c->out;
  WEIR_TRY(weir_graph_targets(r, &c->targets, &out->target_count, err));
  out->fetch_count = r->value_count;
  out->values = weir_alloc_array(c->alloc, g->value_count, sizeof *out->values);
  out->fetches =
      weir_alloc_array(c->alloc, r->value_count, sizeof *out->fetches);
  out->targets =
      weir_alloc_array(c->alloc, out->target_count, sizeof *out->targets);
  c->nodes = weir_alloc_array(c->alloc, g->node_count, sizeof *c->nodes);
  if (out->values == NULL || out->fetches == NULL || out->targets == NULL ||
      c->nodes == NULL)
    return weir_fail_memory(err, g->value_count * sizeof *out->values);
  return WEIR_OK;
}

static weir_status simplify(cutter *c, weir_graph **out, weir_error *err) {
  const weir_cut_request *r = c->request;
  weir_simplify_options options = {.values = r->values,
                                   .value_count = r->value_count,
                                   .nodes = c->targets,
                                   .node_count = c->out->target_count,
                                   .fed = r->fed,
                                   .keep_equal = r->keep_equal,
                                   .drop_inits = true};
  return weir_graph_simplify(r->graph, &options, c->out->values, c->nodes, out,
                             err);
}

/* A pass that makes a graph of |graph|, and maps from its ids. */
typedef weir_status (*rewrite_fn)(cutter *c, const weir_graph *graph,
                                  weir_value_id *values, weir_node_id *nodes,
                                  weir_graph **out_graph, weir_error *err);

static weir_status attend(cutter *c, const weir_graph *graph,
                          weir_value_id *values, weir_node_id *nodes,
                          weir_graph **out_graph, weir_error *err) {
  return weir_graph_attend(graph, c->out->fetches, c->out->fetch_count, values,
                           nodes, out_graph, err);
}

static weir_status fold_norms(cutter *c, const weir_graph *graph,
                              weir_value_id *values, weir_node_id *nodes,
                              weir_graph **out_graph, weir_error *err) {
  const weir_cut *out = c->out;
  bool *held = weir_alloc_array(c->alloc, graph->value_count, sizeof *held);
  if (held == NULL) return weir_fail_memory(err, graph->value_count);
  weir_graph_mark_assigned(c->request->graph, out->values, held);
  for (uint32_t k = 0; k < out->fetch_count; k++) held[out->fetches[k]] = true;
  weir_status s =
      weir_graph_fold_norms(graph, held, values, nodes, out_graph, err);
  weir_free(c->alloc, held);
  return s;
}

static void follow(const uint32_t *map, uint32_t *ids, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (ids[i] != UINT32_MAX) ids[i] = map[ids[i]];
}

/* |*graph| becomes what |rewrite| makes of it; the cut's ids follow. */
static weir_status apply(cutter *c, rewrite_fn rewrite, weir_graph **graph,
                         weir_error *err) {
  const weir_graph *old = c->request->graph, *before = *graph;
  weir_cut *out = c->out;
  weir_graph *after = NULL;
  weir_value_id *values =
      weir_alloc_array(c->alloc, before->value_count, sizeof *values);
  weir_node_id *nodes =
      weir_alloc_array(c->alloc, before->node_count, sizeof *nodes);
  weir_status s = values == NULL || nodes == NULL
                      ? weir_fail_memory(err, before->value_count)
                      : rewrite(c, before, values, nodes, &after, err);
  if (s == WEIR_OK) {
    follow(values, out->values, old->value_count);
    follow(values, out->fetches, out->fetch_count);
    follow(nodes, c->nodes, old->node_count);
    weir_graph_unref(*graph);
    *graph = after;
  }
  weir_free(c->alloc, values);
  weir_free(c->alloc, nodes);
  return s;
}

static bool shapes_known(const weir_graph *g) {
  for (weir_value_id v = 0; v < g->value_count; v++)
    if (!weir_shape_known(g->values[v].shape)) return false;
  return true;
}

uint64_t weir_cut_hash(const weir_graph *g) {
  uint64_t h = weir_graph_hash(g);
  for (weir_node_id id = 0; id < g->node_count; id++)
    h = weir_hash_bytes(&g->nodes[id].group, sizeof g->nodes[id].group, h);
  return h;
}

static weir_status run(cutter *c, weir_error *err) {
  const weir_cut_request *r = c->request;
  weir_cut *out = c->out;
  weir_graph *simple = NULL, *fused = NULL;
  WEIR_TRY(make_room(c, err));
  weir_status s = simplify(c, &simple, err);
  for (uint32_t k = 0; s == WEIR_OK && k < r->value_count; k++)
    out->fetches[k] = out->values[r->values[k]];
  if (s == WEIR_OK && !r->no_fusion && !r->with_gpus)
    s = apply(c, attend, &simple, err);
  if (s == WEIR_OK && !r->no_fusion) s = apply(c, fold_norms, &simple, err);
  for (uint32_t k = 0; s == WEIR_OK && k < out->target_count; k++)
    out->targets[k] = c->nodes[c->targets[k]];
  if (s == WEIR_OK && !r->no_fusion)
    s = weir_graph_fuse(simple, out->fetches, out->fetch_count, &fused, err);
  if (s == WEIR_OK) out->graph = weir_graph_ref(fused != NULL ? fused : simple);
  weir_graph_unref(simple);
  weir_graph_unref(fused);
  return s;
}

weir_status weir_graph_cut(const weir_cut_request *request, weir_cut **out_cut,
                           weir_error *err) {
  const weir_allocator *a = request->graph->alloc;
  *out_cut = NULL;
  weir_cut *out = weir_alloc_array(a, 1, sizeof *out);
  if (out == NULL) return weir_fail_memory(err, sizeof *out);
  out->alloc = a;
  cutter c = {.request = request, .alloc = a, .out = out};
  weir_status s = run(&c, err);
  weir_free(a, c.targets);
  weir_free(a, c.nodes);
  if (s == WEIR_OK)
    *out_cut = out;
  else
    weir_cut_release(out);
  return s;
}

void weir_cut_release(weir_cut *cut) {
  if (cut == NULL) return;
  weir_graph_unref(cut->graph);
  weir_free(cut->alloc, cut->values);
  weir_free(cut->alloc, cut->fetches);
  weir_free(cut->alloc, cut->targets);
  weir_free(cut->alloc, cut);
}

weir_status weir_graph_fix_shapes(const weir_graph *graph,
                                  const weir_shape *shapes,
                                  const weir_graph **out_graph,
                                  weir_error *err) {
  weir_graph *special = NULL;
  /* Symbol 0 stands for "none", so a graph of numbers has one. */
  bool open = graph->symbol_count > 1 || !shapes_known(graph);
  *out_graph = NULL;
  if (open) WEIR_TRY(weir_graph_specialize(graph, shapes, &special, err));
  *out_graph = open ? special : weir_graph_ref(graph);
  return WEIR_OK;
}
