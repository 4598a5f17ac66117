/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_CONTROL_JOINT_H_
#define WEIR_GRAPH_CONTROL_JOINT_H_

#include "runtime/graph/grad/control_grad.h"

/* A body with its gradients, and the two parts it is cut into. */

/* Differentiates |body|, of |g|'s node: for the outputs that are seeded and the
 * inputs that are wanted, which have |roles| (WEIR_BODY_*; NULL: all FIXED).
 * Lists are in |g|'s arena. Only the graph must be released. Recurses as deep
 * as bodies nest. */
weir_status weir_joint_make(weir_control_grad *g, const weir_graph *body,
                            const uint8_t *roles, weir_joint *out);

/* The values that a forward part saves, as outputs after the body's own. */
typedef struct weir_joint_saves {
  const weir_value_id *values; /* of the joint; WEIR_NO_VALUE: zeros */
  uint32_t count;
  const weir_joint *other;           /* whose values the zeros are like; */
  const weir_value_id *other_values; /* which of them; NULL: no zeros */
} weir_joint_saves;

/* The joint's forward part: the body's inputs and outputs, and |saves|. */
weir_status weir_joint_forward(weir_grad_state *ctx, const weir_joint *joint,
                               const weir_joint_saves *saves, weir_graph **out);

/* Begins a body; weir_backward_end must be called, also after a failure. The
 * first failure sticks in |ctx|. */
weir_status weir_backward_begin(weir_backward *b, weir_grad_state *ctx,
                                const weir_joint *joint);

/* One more input, of the type of value |like| of the joint; it stands for value
 * |as| of it (WEIR_NO_VALUE: for none). Returns its value in the body. */
weir_value_id weir_backward_input(weir_backward *b, weir_value_id like,
                                  weir_value_id as);

/* Copies the nodes; after the inputs. */
void weir_backward_nodes(weir_backward *b);

/* Adds a node of the body. */
weir_value_id weir_backward_add(weir_backward *b, const char *op,
                                uint32_t count, const weir_value_id *in,
                                const weir_named_attr *attrs);

/* Zeros of the type of value |like| of the joint. */
weir_value_id weir_backward_zeros(weir_backward *b, weir_value_id like);

/* One more output. */
void weir_backward_output(weir_backward *b, weir_value_id value);

/* Hands the body over, one reference. */
weir_status weir_backward_end(weir_backward *b, weir_graph **out);

#endif
