/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_SESSION_FIRST_H_
#define WEIR_EXEC_SESSION_FIRST_H_

#include "runtime/exec/session/session.h"

/* First values of a session's variables. */

/* Gives variables their first values, those that have none and whose home is
 * here. */
weir_status weir_session_vars_init(weir_exec_session *session, weir_error *err);

/* Whether there is nothing left to do for that. */
bool weir_session_vars_ready(weir_exec_session *session);

/* Sees to it that a variable that nothing assigns has a value here, though its
 * home may be elsewhere: the first value is the same everywhere. Others are
 * left alone. Errors: those of the program of first values. */
weir_status weir_session_vars_want(weir_exec_session *session, weir_sv name,
                                   weir_error *err);

/* Gives all variables their first values again, of a session that runs nothing
 * meanwhile; snapshots keep theirs. Not of a mesh nor of a remote. Errors:
 * those of the program of first values, after which nothing but this is to be
 * done, W6001. */
weir_status weir_exec_variables_first(weir_exec_session *session,
                                      weir_error *err);

#endif
