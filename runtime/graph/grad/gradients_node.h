/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_GRADIENTS_NODE_H_
#define WEIR_GRAPH_GRADIENTS_NODE_H_

#include "runtime/graph/builder.h"

/* Nodes `gradients` become the nodes that compute them. */

/* Replaces nodes `gradients(loss, [w, ...])` by nodes that compute them, in the
 * order of the graph, so that gradients of gradients work. A graph without such
 * nodes is given back with one more reference. Ids change; names lead to the
 * results. The work is bounded by |max_nodes| too: each such node copies the
 * graph, at most four times |max_nodes| nodes in all.
 * Errors: W1014, and as above. */
weir_status weir_graph_expand_gradients(const weir_graph *graph,
                                        uint64_t max_nodes,
                                        weir_graph **out_graph,
                                        weir_error *err);

/* The same for a body of a node that will be added to |outer|. */
weir_status weir_body_expand_gradients(const weir_graph *body,
                                       weir_graph_builder *outer,
                                       uint64_t max_nodes,
                                       weir_graph **out_body, weir_error *err);

#endif
