/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_CONTROL_GRAD_H_
#define WEIR_GRAPH_CONTROL_GRAD_H_

#include "runtime/graph/control.h"
#include "runtime/graph/grad/grad_ctx.h"

/* Gradients of nodes with bodies.
 *
 * A body is differentiated as a graph of its own, once: the *joint* graph is
 * the body and after it the nodes of its ops' rules, which read *seeds*, the
 * gradients of its outputs. The joint is then cut in two. Nodes that depend on
 * no seed go forward: a twin of the node runs them in place of the body and
 * saves (as stacks, as further results of an if) the values that the others
 * read. The others are the body of a second node, which runs backwards. Values
 * that depend on captured values and constants alone are not saved but computed
 * again.
 *
 *   body     (c, x, w) -> c', y
 *   twin     (c, x, w) -> c', y, r           r: saved
 *   backward (dc', dw; r, x, dy; w) -> dc, dw + ..., dx */

/* An input of a body from turn to turn: the same, a slice, or an output of the
 * turn before. */
enum { WEIR_BODY_FIXED, WEIR_BODY_SLICED, WEIR_BODY_CARRIED };

typedef struct weir_joint {
  const weir_graph *body;
  weir_graph *graph;    /* one reference */
  weir_value_id *seeds; /* per output of the body, or WEIR_NO_VALUE */
  weir_value_id *grads; /* per input: its gradient, or WEIR_NO_VALUE */
  bool *backward;       /* by node: depends on a seed */
  bool *again;          /* by node: forward, computed again */
  bool *needed;         /* by node, of the backward part and |again| */
  weir_value_id *saved; /* values that the backward part reads, but for inputs
                           that it can have again: fixed and sliced ones */
  uint32_t saved_count;
  bool *reads; /* per input of the body: read by the backward part */
} weir_joint;

/* A body under construction that copies a joint's backward part. Inputs are
 * added first, in the order in which the node has them. */
typedef struct weir_backward {
  weir_grad_state *ctx;
  weir_pass pass;
  const weir_joint *joint;
  uint32_t added;
} weir_backward;

/* A node whose gradients are being added. */
typedef struct weir_control_grad {
  weir_grad_state *ctx;
  weir_arena arena;
  const weir_node *node;
  weir_control parts;
  const weir_graph *body; /* the last one; an if's two are alike */
  uint32_t ins, outs;     /* of the body */
  bool *wanted, *seeded;
  uint8_t *roles;
  weir_joint joints[2];
  /* Inputs of the backward node, as values of the new graph. */
  weir_value_id *in;
  weir_dim *axes;
  uint32_t in_count, axis_count;
} weir_control_grad;

/* Notes that memory ran out. */
weir_status weir_control_no_memory(const weir_control_grad *g, size_t bytes);
/* The node's output that is output |i| of the body; its input that is input |i|
 * of the body. */
uint32_t weir_control_output(const weir_control_grad *g, uint32_t i);
weir_value_id weir_control_input(const weir_control_grad *g, uint32_t i);
/* Room for g->in and g->axes, once the joints are made. */
weir_status weir_control_lists(weir_control_grad *g);
/* Adds the node once more, with other bodies and their further outputs. */
weir_status weir_control_twin(weir_control_grad *g, const weir_attr *attrs,
                              const weir_graph *const *bodies,
                              weir_node_id *out);
/* Adds the backward node, whose inputs are g->in. */
weir_status weir_control_backward(weir_control_grad *g, const char *op_name,
                                  const weir_attr *attrs,
                                  const weir_graph *const *bodies,
                                  uint32_t body_count, weir_node_id *out);

/* Adds the gradients of node |id|, whose outputs' are in ctx->dys. Errors:
 * W1128, W2018, the ops' own, W6001. */
weir_status weir_grad_control(weir_grad_state *ctx, weir_node_id id);

#endif
