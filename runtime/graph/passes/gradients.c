/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/pass/pass_def.h"
#include "runtime/graph/train/train.h"
#include "runtime/graph/train/train_graph.h"
#include "runtime/graph/train/train_spec.h"

static weir_status run(const weir_graph *graph, weir_graph **out_graph,
                       weir_error *err) {
  weir_train_spec *spec = NULL;
  *out_graph = NULL;
  WEIR_TRY(weir_train_spec_read(graph, NULL, &spec, err));
  weir_status s = weir_graph_train_gradients(graph, spec, out_graph, err);
  weir_train_spec_release(spec);
  return s;
}

const weir_pass_def weir_pass_gradients = {
    .name = "gradients",
    .summary = "the loaded graph with the gradients of the loss of `train`",
    .needs = "train",
    .run = run,
};
