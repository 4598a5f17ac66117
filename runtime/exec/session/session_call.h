/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_SESSION_CALL_H_
#define WEIR_EXEC_SESSION_CALL_H_

#include "runtime/exec/session/session_defaults.h"
#include "runtime/exec/session/session_internal.h"

/* A request on its way through a session. */

/* One run of a request. Values to dump are fetched after the others. */
typedef struct weir_session_call {
  weir_exec_session *session;
  const weir_exec_request *request;
  weir_wanted wanted;
  weir_cached *cached;
  weir_frame *frame;
  weir_var_buffer **held;
  weir_value_id *ids;
  weir_tensor **tensors;
  bool *made; /* tensors of this call, not the caller's */
  bool *stays;
  uint32_t count;
  weir_default_feeds defaults;
  weir_tensor **varying; /* of those: references, or NULL */
} weir_session_call;

/* Finds or compiles the program, gives variables their first values, takes a
 * frame, makes outputs. |request| must stay until close. Close |c| also after a
 * failure. May compile and run: it blocks. */
weir_status weir_session_call_open(weir_session_call *c,
                                   weir_exec_session *session,
                                   const weir_exec_request *request,
                                   bool unplaced, weir_error *err);

/* The same where nothing has to be compiled or computed for it, which does not
 * block; else |*out_opened| is false, and |c| holds nothing. */
weir_status weir_session_call_open_known(weir_session_call *c,
                                         weir_exec_session *session,
                                         const weir_exec_request *request,
                                         bool *out_opened, weir_error *err);

/* Hands each fetch its tensor or its failure, after the run. */
void weir_session_call_deliver(weir_session_call *c);

/* Every fetch fails with |status|. */
void weir_session_call_fail(weir_session_call *c, weir_status status,
                            const weir_error *err);

/* Gives all back that is left; also after a failure. */
void weir_session_call_close(weir_session_call *c);

#endif
