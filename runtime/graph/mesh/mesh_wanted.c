/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/mesh/mesh_wanted.h"

#include "runtime/graph/mesh/mesh.h"
#include "runtime/graph/mesh/mesh_lower.h"
#include "runtime/graph/pass/pass_simplify.h"
#include "runtime/graph/train/train.h"

/* The lowered graph of one purpose. */

static weir_status prune(const weir_graph *graph, const weir_mesh_graph *mesh,
                         const weir_train_graph *train, weir_graph **out_graph,
                         weir_error *err) {
  const weir_allocator *a = graph->alloc;
  uint32_t values = train != NULL ? 1 : graph->output_count;
  uint32_t nodes = train != NULL ? train->target_count : 0;
  weir_value_id *wanted = weir_alloc_array(a, values + 1u, sizeof *wanted);
  weir_node_id *targets = weir_alloc_array(a, nodes + 1u, sizeof *targets);
  weir_simplify_options options = {.values = wanted,
                                   .value_count = values,
                                   .nodes = targets,
                                   .node_count = nodes,
                                   .keep_equal = true,
                                   .drop_inits = true};
  weir_status s = WEIR_OK;
  if (wanted == NULL || targets == NULL)
    s = weir_fail_memory(err, values * sizeof *wanted);
  for (uint32_t i = 0; s == WEIR_OK && i < values; i++)
    wanted[i] =
        mesh->values[train != NULL ? train->loss : graph->outputs[i].value];
  for (uint32_t i = 0; s == WEIR_OK && i < nodes; i++)
    targets[i] = mesh->nodes[train->targets[i]];
  if (s == WEIR_OK)
    s = weir_graph_simplify(mesh->graph, &options, NULL, NULL, out_graph, err);
  weir_free(a, wanted);
  weir_free(a, targets);
  return s;
}

weir_status weir_graph_mesh_wanted(const weir_graph *graph,
                                   const weir_train_graph *train,
                                   weir_graph **out_graph, weir_error *err) {
  weir_mesh_graph *mesh = NULL;
  const weir_graph *from = train != NULL ? train->graph : graph;
  *out_graph = NULL;
  WEIR_TRY(weir_graph_mesh(from, &mesh, err));
  weir_status s = prune(from, mesh, train, out_graph, err);
  weir_mesh_graph_release(mesh);
  return s;
}
