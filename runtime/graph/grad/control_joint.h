/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_CONTROL_JOINT_H_
#define WEIR_GRAPH_CONTROL_JOINT_H_

#include "runtime/graph/grad/control_grad.h"

/* A body with its gradients, and the two parts it is cut into. */

/* Differentiates |body|. |seeded| has true for each output that has a gradient,
 * |wanted| for each input that needs one; |roles| has the role of each input
 * (WEIR_BODY_*; NULL: all FIXED). Lists are in |arena|. Only the graph must be
 * released. Recurses as deep as bodies nest. */
weir_status weir_joint_make(weir_grad_state *ctx, const weir_graph *body,
                            const bool *seeded, const bool *wanted,
                            const uint8_t *roles, weir_arena *arena,
                            weir_joint *out);

/* The joint's forward part: the body's inputs and outputs, and then |count|
 * more outputs. |more[i]|: a value of the joint; WEIR_NO_VALUE: zeros like
 * value |i| of |other|. */
weir_status weir_joint_forward(weir_grad_state *ctx, const weir_joint *joint,
                               const weir_value_id *more, uint32_t count,
                               const weir_joint *other,
                               const weir_value_id *other_values,
                               weir_graph **out);

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
