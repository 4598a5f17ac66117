/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_GRAD_CTX_H_
#define WEIR_GRAPH_GRAD_CTX_H_

#include "ops/grad_ctx.h"
#include "runtime/base/map.h"
#include "runtime/graph/pass/pass.h"

/* A gradient rule's view: one node of the old graph at a time, and the new
 * graph, in which the old ids are still good. */
typedef struct weir_grad_state {
  weir_grad_ctx base; /* first: the node as its rule sees it */
  weir_pass pass;
  const weir_node *node; /* of the old graph */
  weir_ref *dys;         /* by old value: its gradient so far */
  bool *depends;         /* by old value: depends on a wrt */
  weir_map ops;          /* op names to indices of the registry */
  uint32_t added;        /* nodes, for their names */
  uint64_t max_nodes;    /* of the new graph; 0: no limit */
  weir_status status;    /* the first failure; sticks */
  weir_error *err;
} weir_grad_state;

/* |err| must not be NULL. Errors: W6001; _end must be called all the same. */
weir_status weir_grad_ctx_begin(weir_grad_state *ctx, const weir_graph *from,
                                weir_error *err);
/* The same for |from|, a body of a node that will be added to |outer|. */
weir_status weir_grad_ctx_begin_body(weir_grad_state *ctx,
                                     const weir_graph *from,
                                     weir_graph_builder *outer,
                                     weir_error *err);
/* Hands the new graph over when |status| is OK; frees the rest. */
weir_status weir_grad_ctx_end(weir_grad_state *ctx, weir_status status,
                              weir_graph **out_graph, weir_error *err);

/* Turns to |node| of the old graph: nodes added from now on have its name,
 * place and device. */
void weir_grad_ctx_at(weir_grad_state *ctx, const weir_node *node);

/* weir_grad_node into another builder than the context's. */
weir_ref weir_grad_node_at(weir_grad_state *ctx, weir_graph_builder *builder,
                           const char *op, uint32_t in_count,
                           const weir_ref *in, const weir_named_attr *attrs);
/* A new name for a node added on behalf of ctx->node; data NULL: no memory. */
weir_sv weir_grad_name(weir_grad_state *ctx, weir_graph_builder *builder,
                       const char *what);
/* The op of that very name; NULL: none. */
const weir_op_def *weir_grad_op(const weir_grad_state *ctx, const char *name);

#endif
