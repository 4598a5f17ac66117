/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/mesh/mesh.h"
#include "runtime/tools/weir_tools_plan.h"

static weir_status want_training(const weir_graph *graph, weir_plan_wanted *w,
                                 weir_error *err) {
  WEIR_TRY(weir_train_spec_read(graph, NULL, &w->spec, err));
  WEIR_TRY(weir_graph_train(graph, w->spec, &w->train, err));
  w->options = (weir_simplify_options){.values = &w->train->loss,
                                       .value_count = 1,
                                       .nodes = w->train->targets,
                                       .node_count = w->train->target_count,
                                       .drop_inits = true};
  return WEIR_OK;
}

static weir_status want_outputs(const weir_graph *graph, weir_plan_wanted *w,
                                weir_error *err) {
  size_t count = graph->output_count;
  w->values = weir_alloc_array(graph->alloc, count + 1, sizeof *w->values);
  if (w->values == NULL)
    return weir_fail_memory(err, count * sizeof *w->values);
  for (uint32_t i = 0; i < count; i++) w->values[i] = graph->outputs[i].value;
  w->options = (weir_simplify_options){
      .values = w->values, .value_count = count, .drop_inits = true};
  return WEIR_OK;
}

/* Every input is fed, so defaults are nobody's. */
static weir_status feed_all(const weir_graph *graph, weir_plan_wanted *w,
                            weir_error *err) {
  const weir_graph *g = w->train != NULL ? w->train->graph : graph;
  w->fed = weir_alloc_array(g->alloc, g->input_count + 1u, sizeof *w->fed);
  if (w->fed == NULL)
    return weir_fail_memory(err, g->input_count * sizeof *w->fed);
  for (uint32_t i = 0; i < g->input_count; i++) w->fed[i] = true;
  w->options.fed = w->fed;
  return WEIR_OK;
}

weir_status weir_want(const weir_graph *graph, bool inference,
                      weir_plan_wanted *w, weir_error *err) {
  WEIR_TRY(graph->train != NULL && !inference ? want_training(graph, w, err)
                                              : want_outputs(graph, w, err));
  return feed_all(graph, w, err);
}

void weir_want_end(const weir_graph *graph, weir_plan_wanted *w) {
  weir_free(graph->alloc, w->values);
  weir_free(graph->alloc, w->fed);
  weir_train_graph_release(w->train);
  weir_train_spec_release(w->spec);
}

/* With a mesh: what its devices do. */
static weir_status mesh_groups(const weir_graph *graph,
                               const weir_plan_wanted *w, weir_graph **out,
                               weir_error *err) {
  weir_graph *lowered = NULL;
  WEIR_TRY(weir_graph_mesh_wanted(graph, w->train, &lowered, err));
  weir_status s = weir_graph_fuse(lowered, NULL, 0, out, err);
  weir_graph_unref(lowered);
  return s;
}

/* As a program of what is wanted does it. */
weir_status weir_want_groups(const weir_graph *graph, const weir_plan_wanted *w,
                             weir_graph **out, weir_error *err) {
  const weir_graph *g = w->train != NULL ? w->train->graph : graph;
  size_t count = w->options.value_count;
  weir_graph *simple = NULL;
  weir_value_id *map =
      weir_alloc_array(g->alloc, g->value_count + count + 1, sizeof *map);
  *out = NULL;
  if (map == NULL) return weir_fail_memory(err, g->value_count * sizeof *map);
  if (g->mesh != NULL) {
    weir_free(g->alloc, map);
    return mesh_groups(graph, w, out, err);
  }
  weir_value_id *keep = map + g->value_count;
  weir_status s = weir_graph_simplify(g, &w->options, map, NULL, &simple, err);
  for (size_t i = 0; s == WEIR_OK && i < count; i++)
    keep[i] = map[w->options.values[i]];
  if (s == WEIR_OK) s = weir_graph_fuse(simple, keep, count, out, err);
  weir_graph_unref(simple);
  weir_free(g->alloc, map);
  return s;
}

weir_measure_request weir_want_measured(const weir_graph *graph,
                                        const weir_plan_wanted *w,
                                        const weir_placement *placement) {
  return (weir_measure_request){
      .graph = w->train != NULL ? w->train->graph : graph,
      .values = w->options.values,
      .nodes = w->options.nodes,
      .value_count = (uint32_t)w->options.value_count,
      .node_count = (uint32_t)w->options.node_count,
      .placement = placement};
}
