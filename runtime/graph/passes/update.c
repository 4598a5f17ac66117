/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/pass/pass_def.h"
#include "runtime/graph/split/split.h"

static weir_status run(const weir_graph *graph, weir_graph **out_graph,
                       weir_error *err) {
  weir_split *split = NULL;
  *out_graph = NULL;
  weir_status s = weir_graph_split_plain(graph, &split, err);
  if (s == WEIR_OK) *out_graph = weir_graph_ref(split->updates[0].graph);
  weir_split_release(split);
  return s;
}

const weir_pass_def weir_pass_update = {
    .name = "update",
    .summary =
        "a step of the one parameter server: gradients come in, variables "
        "change",
    .needs = "train",
    .run = run,
};
