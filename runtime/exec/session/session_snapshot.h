/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_SESSION_SNAPSHOT_H_
#define WEIR_EXEC_SESSION_SNAPSHOT_H_

#include "runtime/exec/session/session.h"

/* A variable's value without a copy. */

/* Its current value without a copy: read-only, and unchanged by later
 * assignments, for which the variable takes another buffer. Release it, on any
 * thread, before the session. */
weir_status weir_exec_variable_snapshot(weir_exec_session *session,
                                        weir_node_id node,
                                        weir_tensor **out_tensor,
                                        weir_error *err);

#endif
