/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_SESSION_REMOTE_H_
#define WEIR_EXEC_SESSION_REMOTE_H_

#include "runtime/exec/session/remote.h"
#include "runtime/exec/session/session_internal.h"

/* Programs of a session's remote. */

/* Prepares |e|, a placed program, at the session's remote; |request| has its
 * cut and plan, |special| is its graph with the fed shapes. The compiled
 * program has the fetches as its outputs and no variables. */
weir_status weir_session_remote_compile(weir_exec_session *session,
                                        weir_cached *e,
                                        const weir_compile_request *request,
                                        const weir_graph *special,
                                        weir_error *err);
void weir_session_remote_forget(weir_exec_session *session, weir_cached *e);

/* After a run of |e| has ended with |status| as its callers see it. */
weir_status weir_session_remote_decide(weir_exec_session *session,
                                       const weir_cached *e, weir_status status,
                                       weir_error *err);

/* Values of |count| variables, by their nodes; see remote.h. */
weir_status weir_session_remote_get(weir_exec_session *session,
                                    const weir_node_id *nodes,
                                    void *const *data, uint32_t count,
                                    weir_error *err);
weir_status weir_session_remote_set(weir_exec_session *session,
                                    weir_node_id node, const void *data,
                                    weir_error *err);

#endif
