/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_SESSION_RUN_H_
#define WEIR_EXEC_SESSION_RUN_H_

#include "runtime/exec/run/frame.h"

typedef struct weir_cached weir_cached;
typedef struct weir_var_buffer weir_var_buffer;
typedef struct weir_wanted weir_wanted;

/* Runs of a session: a program found, a step, variables committed. */

/* Runs the nodes that fetches and targets need. Blocks. Returns the first
 * failure, in node order; see weir_exec_fetch. */
weir_status weir_exec_run(weir_exec_session *session,
                          const weir_exec_request *request, weir_error *err);

/* weir_exec_run in ids of the session's own graph. */
weir_status weir_session_own_run(weir_exec_session *session,
                                 const weir_exec_request *request,
                                 weir_error *err);

/* One step of |frame|, with variables and commit. |held| has room for 2 buffers
 * per variable. */
weir_status weir_session_step(weir_exec_session *session,
                              const weir_cached *cached, weir_frame *frame,
                              weir_var_buffer **held,
                              const weir_run_options *options, weir_error *err);

/* Computes |wanted|'s fetches from its feeds as one device does, and gives
 * references. |options| (may be NULL) are the run's. */
weir_status weir_session_compute(weir_exec_session *session,
                                 const weir_wanted *wanted,
                                 const weir_run_options *options,
                                 weir_tensor **out, weir_error *err);

/* Makes |fetch|'s tensor, or checks the one that is there. Nothing happens
 * where another task makes the fetch. */
weir_status weir_session_output(weir_exec_session *session,
                                const weir_cached *cached, uint32_t k,
                                weir_tensor **tensor, weir_error *err);

/* Whether another task makes fetch |k|. */
bool weir_session_fetch_elsewhere(const weir_cached *cached, uint32_t k);

#endif
