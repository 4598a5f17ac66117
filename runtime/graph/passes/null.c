/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/pass/pass_def.h"

#include "runtime/graph/pass/pass.h"

/* A pass to copy: it makes the same graph again, node by node. The library does
 * not hold it; a test keeps it built. To make a pass of a copy, name it in the
 * list of meson.build. */

static weir_status run(const weir_graph *graph, weir_graph **out_graph,
                       weir_error *err) {
  weir_pass pass;
  weir_status s = weir_pass_begin(&pass, graph, err);
  for (weir_node_id id = 0; s == WEIR_OK && id < graph->node_count; id++)
    s = weir_pass_copy(&pass, id, NULL, UINT32_MAX, err);
  return weir_pass_end(&pass, s, out_graph, err);
}

const weir_pass_def weir_pass_null = {
    .name = "null",
    .summary = "the same graph, to copy",
    .run = run,
};
