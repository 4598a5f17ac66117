/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_SESSION_CACHE_H_
#define WEIR_EXEC_SESSION_CACHE_H_

#include "runtime/exec/session/session_internal.h"

/* The compiled programs of a session, and their frames. */

/* Finds or compiles; the caller gets a reference. */
weir_status weir_session_program(weir_exec_session *session,
                                 const weir_wanted *wanted,
                                 weir_cached **out_cached, weir_error *err);

/* The same without compiling; NULL: it has to be. */
weir_cached *weir_session_program_known(weir_exec_session *session,
                                        const weir_wanted *wanted);

/* The cut that the program of |wanted| is placed and compiled from. */
weir_status weir_session_cut(weir_exec_session *session,
                             const weir_wanted *wanted, weir_cut **out_cut,
                             weir_error *err);

void weir_session_program_release(weir_exec_session *session,
                                  weir_cached *cached);

/* A frame of the program, from those left by earlier runs if there is one. */
weir_status weir_session_frame(weir_exec_session *session, weir_cached *cached,
                               weir_frame **out_frame, weir_error *err);

/* Gives a frame back for later runs. */
void weir_session_frame_return(weir_exec_session *session, weir_cached *cached,
                               weir_frame *frame);

/* Drops the programs that took variable |var| for a constant. */
void weir_session_make_stale(weir_exec_session *session, uint32_t var);

#endif
