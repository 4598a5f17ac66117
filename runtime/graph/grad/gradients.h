/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_GRADIENTS_H_
#define WEIR_GRAPH_GRADIENTS_H_

#include "runtime/graph/builder.h"
#include "runtime/graph/grad/grad_ctx.h"

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

/* Spreads the marks in ctx->depends to all values that depend on marked ones,
 * among the outputs of the first |nodes|. */
void weir_grad_mark(weir_grad_state *ctx, uint32_t nodes);

/* Adds the gradients of node |id|'s inputs, when there are any to pass on. */
weir_status weir_grad_visit(weir_grad_state *ctx, weir_node_id id);

/* Copies the first |nodes| nodes of the old graph, which hold the loss and all
 * |wrt|, and adds the gradients of the sum of the loss. Errors: as of
 * weir_graph_gradients. */
weir_status weir_grad_run(weir_grad_state *ctx, uint32_t nodes,
                          weir_value_id loss, const weir_value_id *wrt,
                          size_t count, weir_value_id *out);

#endif
