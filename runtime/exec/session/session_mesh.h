/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_SESSION_MESH_H_
#define WEIR_EXEC_SESSION_MESH_H_

#include "runtime/exec/session/session_internal.h"

/* Sessions whose graph has a mesh: the same calls in ids of the lowered graph.
 */

/* Runs the lowered graph, or binds it where |out_binding| is not NULL. */
weir_status weir_session_mesh_run(weir_exec_session *session,
                                  const weir_exec_request *request,
                                  weir_binding **out_binding, weir_error *err);

/* A copy of the whole variable. */
weir_status weir_session_mesh_get(weir_exec_session *session, weir_node_id node,
                                  weir_tensor **out_tensor, weir_error *err);

/* Sets it, all shards. */
weir_status weir_session_mesh_set(weir_exec_session *session, weir_node_id node,
                                  const weir_tensor *tensor, weir_error *err);

/* The value of the given graph that |id| stands for, or NULL. */
const weir_value *weir_session_mesh_value(const weir_exec_session *session,
                                          weir_value_id id);

#endif
