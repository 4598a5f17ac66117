/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/pass/pass_def.h"

static weir_status run(const weir_graph *graph, weir_graph **out_graph,
                       weir_error *err) {
  (void)err;
  *out_graph = weir_graph_ref(graph);
  return WEIR_OK;
}

const weir_pass_def weir_pass_load = {
    .name = "load",
    .summary =
        "as loaded: imports, blocks and repeats expanded, all types "
        "inferred",
    .run = run,
};
