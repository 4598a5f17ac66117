/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_SESSION_VARS_H_
#define WEIR_EXEC_SESSION_VARS_H_

#include "runtime/exec/run/frame.h"

typedef struct weir_cached weir_cached;
typedef struct weir_var_buffer weir_var_buffer;

/* The variables of a session. */

/* The current value of variable |node| (op var or state), as a copy. Errors:
 * W7050 where its home, or that of one of its shards, is another process. */
weir_status weir_exec_variable_get(weir_exec_session *session,
                                   weir_node_id node, weir_tensor **out_tensor,
                                   weir_error *err);

/* Sets it; dtype and shape must be the variable's. Of a mesh's variable the
 * shards are set whose home is here. Errors: W4009; W7050 where its home is
 * another process, unless nothing assigns it. A variable that no node
 * assigns is compiled in as a constant; after a set, programs that did so are
 * compiled again by their next run, bindings' too. */
weir_status weir_exec_variable_set(weir_exec_session *session,
                                   weir_node_id node, const weir_tensor *tensor,
                                   weir_error *err);

/* The bytes of a variable that nothing assigns, held for |cached|; else NULL.
 */
const void *weir_session_constant(weir_exec_session *session,
                                  weir_cached *cached, weir_sv name);

/* Whether nothing in the graph assigns the variable. */
bool weir_session_is_constant(const weir_exec_session *session, weir_sv name);

/* Lists the graph's variables. Errors: W6001. */
weir_status weir_session_vars_create(weir_exec_session *session,
                                     weir_error *err);

void weir_session_vars_release(weir_exec_session *session);

/* Points |frame| to the values at the start of a step, and to buffers for
 * those to be; |held| gets the buffers, 2 per variable. */
weir_status weir_session_vars_begin(weir_exec_session *session,
                                    const weir_cached *cached,
                                    weir_frame *frame, weir_var_buffer **held,
                                    weir_error *err);

/* Ends the step; |commit| makes the new values current. */
void weir_session_vars_end(weir_exec_session *session,
                           const weir_cached *cached, weir_var_buffer **held,
                           bool commit);

/* Errors: W7050 where the home of |var|, one of the session's, is another
 * process. */
weir_status weir_session_check_home(const weir_exec_session *session,
                                    uint32_t var, weir_error *err);

/* ---- Under |vars_lock|. */

struct weir_variable;

/* A buffer that had no user, now with one; NULL: no memory. */
weir_var_buffer *weir_session_var_spare(weir_exec_session *session,
                                        struct weir_variable *var);
/* A buffer of |var| for a value that is fed, held once; NULL: no memory. */
weir_var_buffer *weir_session_var_room(weir_exec_session *session,
                                       struct weir_variable *var);
/* After a hold of |buffer| has ended: in a session that overwrites, memory
 * that nothing needs is given back. */
void weir_session_var_left(weir_exec_session *session, weir_var_buffer *buffer);

/* ---- */

/* weir_exec_variable_get in ids of the session's own graph. */
weir_status weir_session_get(weir_exec_session *session, weir_node_id node,
                             weir_tensor **out_tensor, weir_error *err);

/* weir_exec_variable_set in ids of the session's own graph. */
weir_status weir_session_set(weir_exec_session *session, weir_node_id node,
                             const weir_tensor *tensor, weir_error *err);

#endif
