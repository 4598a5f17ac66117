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

/* The same in ids of the session's own graph; not of a remote. */
weir_status weir_session_snapshot(weir_exec_session *session, weir_node_id node,
                                  weir_tensor **out_tensor, weir_error *err);

/* Of a session that overwrites (weir_session_options): memory for a value of
 * the variable's type, uninitialised. Where it is fed to a run that may write
 * the variable's new value over that feed (weir_binding_over), and the fed
 * tensor holds it alone, the run does so: then it is the variable's value, and
 * no more to be written. Release it, on any thread, before the session. Errors:
 * W0004, W6001. */
weir_status weir_exec_variable_room(weir_exec_session *session,
                                    weir_node_id node, weir_tensor **out_tensor,
                                    weir_error *err);

struct weir_checkpoint_owners;

/* Whether variables live in processes that may save and load them themselves:
 * those of a remote, but for a mesh, whose shards the session alone puts
 * together. */
bool weir_exec_session_has_owners(const weir_exec_session *session);

/* Whether its variables had values of other drivers when it was made. */
bool weir_exec_session_has_found(const weir_exec_session *session);

/* Of such a session: holds all values of this moment (remote.h, hold). */
weir_status weir_exec_variables_hold(weir_exec_session *session,
                                     const weir_node_id *nodes, uint32_t count,
                                     struct weir_checkpoint_owners **out_owners,
                                     weir_error *err);

struct weir_checkpoint_common;
struct weir_diag_sink;
struct weir_remote_row;

/* Of such a session: has variables read where they live (remote.h, load). */
weir_status weir_exec_variables_load(weir_exec_session *session,
                                     const struct weir_checkpoint_common *place,
                                     const struct weir_remote_row *rows,
                                     uint32_t count, bool *out_left,
                                     const struct weir_diag_sink *sink,
                                     weir_error *err);

#endif
