/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/train/train.h"
#include "runtime/graph/train/train_graph.h"
#include "runtime/graph/train/train_spec.h"

#include "runtime/graph/pass/pass_def.h"

static weir_status run(const weir_graph *graph, weir_graph **out_graph,
                       weir_error *err) {
  weir_train_spec *spec = NULL;
  weir_train_graph *train = NULL;
  *out_graph = NULL;
  WEIR_TRY(weir_train_spec_read(graph, NULL, &spec, err));
  weir_status s = weir_graph_train(graph, spec, &train, err);
  if (s == WEIR_OK) *out_graph = weir_graph_ref(train->graph);
  weir_train_graph_release(train);
  weir_train_spec_release(spec);
  return s;
}

const weir_pass_def weir_pass_train = {
    .name = "train",
    .summary = "a step of training: gradients, decay, clipping, updates",
    .needs = "train",
    .run = run,
};
