/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_GRADIENTS_H_
#define WEIR_GRAPH_GRADIENTS_H_

#include "runtime/graph/builder.h"

/* Reverse-mode differentiation, as a pass: the new graph is the old one, ids
 * kept, and after it the nodes that each op's gradient rule adds.
 *
 * |out_gradients[i]| is d(sum of loss) / d(wrt[i]), of the shape and dtype of
 * wrt[i]; zeros where the loss does not depend on it. Only nodes on a path from
 * some wrt to the loss are visited. Added nodes are called grad/NODE/OP, carry
 * the place and requested device of the node they come from, and can be
 * differentiated again where their own rules allow.
 * Errors: W2018 for an op without a gradient on the way, W2005 when loss or a
 * wrt is not floating point, the ops' own, W6001. */
weir_status weir_graph_gradients(const weir_graph *graph, weir_value_id loss,
                                 const weir_value_id *wrt, size_t count,
                                 weir_value_id *out_gradients,
                                 weir_graph **out_graph, weir_error *err);

/* Replaces nodes `gradients(loss, [w, ...])` by what computes them, in the
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
