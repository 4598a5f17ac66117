/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/pass/pass_def.h"
#include "runtime/graph/pass/pass_fuse.h"

static weir_status run(const weir_graph *graph, weir_graph **out_graph,
                       weir_error *err) {
  weir_graph *simple = NULL;
  *out_graph = NULL;
  WEIR_TRY(weir_pass_norms_folded(graph, &simple, err));
  weir_status s = weir_graph_fuse(simple, NULL, 0, out_graph, err);
  weir_graph_unref(simple);
  return s;
}

const weir_pass_def weir_pass_fuse = {
    .name = "fuse",
    .summary = "the simplified graph, with its fusion groups",
    .run = run,
};
