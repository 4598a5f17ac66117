/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_SESSION_DEFAULTS_H_
#define WEIR_EXEC_SESSION_DEFAULTS_H_

#include "runtime/exec/session/session_internal.h"

/* The feeds of placed programs that the caller leaves out. */

/* Whether programs for |wanted| are placed. */
bool weir_session_places(const weir_exec_session *session,
                         const weir_wanted *wanted);

/* Whether the caller leaves out inputs that have defaults. */
bool weir_session_has_defaults(const weir_exec_session *session,
                               const weir_wanted *wanted);

/* Finds them; of those that vary the tensors are left open. Release |out| also
 * after a failure. Errors: those of computing defaults, W6001. */
weir_status weir_session_defaults(weir_exec_session *session,
                                  const weir_wanted *wanted,
                                  weir_default_feeds *out, weir_error *err);

void weir_default_feeds_release(const weir_exec_session *session,
                                weir_default_feeds *feeds);

#endif
