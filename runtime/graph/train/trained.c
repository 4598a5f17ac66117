/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/train/trained.h"

#include "runtime/graph/train/train_rules.h"
#include "runtime/graph/train/train_spec.h"

void weir_graph_trained(const weir_graph *graph, bool *out) {
  weir_train_spec *spec = NULL;
  bool known = graph->train != NULL &&
               weir_train_spec_read(graph, NULL, &spec, NULL) == WEIR_OK;
  for (weir_node_id id = 0; id < graph->node_count; id++)
    out[id] = known && weir_train_is_trained(graph, spec->rules, id);
  weir_train_spec_release(spec);
}
