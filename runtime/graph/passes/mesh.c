/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/mesh/mesh_wanted.h"
#include "runtime/graph/train/train_graph.h"
#include "runtime/graph/train/train_spec.h"

#include "runtime/graph/pass/pass_def.h"
#include "runtime/graph/train/train.h"

static weir_status run(const weir_graph *graph, weir_graph **out_graph,
                       weir_error *err) {
  weir_train_spec *spec = NULL;
  weir_train_graph *train = NULL;
  weir_status s = WEIR_OK;
  *out_graph = NULL;
  if (graph->train != NULL) {
    s = weir_train_spec_read(graph, NULL, &spec, err);
    if (s == WEIR_OK) s = weir_graph_train(graph, spec, &train, err);
  }
  if (s == WEIR_OK) s = weir_graph_mesh_wanted(graph, train, out_graph, err);
  weir_train_graph_release(train);
  weir_train_spec_release(spec);
  return s;
}

const weir_pass_def weir_pass_mesh = {
    .name = "mesh",
    .summary =
        "a step of training, or else the outputs, on the mesh, with "
        "its collectives",
    .needs = "mesh",
    .run = run,
};
