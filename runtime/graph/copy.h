/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_COPY_H_
#define WEIR_GRAPH_COPY_H_

#include "runtime/graph/builder.h"

/* Copies nodes and ports into a graph that is being built. */

/* Copies node |id| of the parent graph, its inputs and control predecessors
 * replaced: |values| and |nodes| map old ids to new ones. Runs the shape rule
 * again. A predecessor that maps to UINT32_MAX is dropped. */
weir_status weir_graph_builder_copy(weir_graph_builder *builder,
                                    const weir_graph *from, weir_node_id id,
                                    const weir_value_id *values,
                                    const weir_node_id *nodes,
                                    weir_node_id *out_node, weir_diag *diag);

/* The inputs and outputs of |from|, their values replaced as by copy. Outputs
 * whose value maps to WEIR_NO_VALUE are dropped. */
weir_status weir_graph_builder_copy_ports(weir_graph_builder *builder,
                                          const weir_graph *from,
                                          const weir_value_id *values,
                                          weir_error *err);

#endif
