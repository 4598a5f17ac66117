/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_TRAINED_H_
#define WEIR_GRAPH_TRAINED_H_

#include "runtime/graph/graph.h"

/* Says of each node of |graph| whether it is a variable that the `train`
 * section updates: |out| has room for all nodes. A section that cannot be read
 * trains nothing; its errors are reported when the graph is trained. */
void weir_graph_trained(const weir_graph *graph, bool *out);

#endif
