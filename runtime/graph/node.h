/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_NODE_H_
#define WEIR_GRAPH_NODE_H_

#include "runtime/graph/builder.h"

/* Adds a node to a graph: the only way in. */

/* Adds a node: checks counts, attributes and dtypes, then runs the shape rule.
 * On failure |diag| (may be NULL) holds the whole story: inputs with their
 * types and places, the chain of reasons, hints. Errors: W1104, W1107-W1111,
 * W2005, the op's own, W6001. */
weir_status weir_graph_builder_add(weir_graph_builder *builder,
                                   const weir_node_spec *spec,
                                   weir_node_id *out_node, weir_diag *diag);

#endif
