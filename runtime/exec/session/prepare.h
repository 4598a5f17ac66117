/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_PREPARE_H_
#define WEIR_EXEC_PREPARE_H_

#include "runtime/exec/session/session_internal.h"
#include "runtime/exec/session/step.h"

/* Sessions that follow the session of another process.
 *
 * A task of a cluster makes the programs that its driver has made: by the same
 * request, in ids of the session's own graph (a mesh is lowered), and placed by
 * the driver's plan. Each program has a channel of its own, since its edges are
 * numbered by its plan.
 *
 *   weir_session_cut_of(session, request, &cut, err);
 *   weir_plan_unpack(placing, cut->graph, bytes, &plan, err);
 *   weir_session_add_plan(session, plan, channel, err);
 *   weir_session_prepare(session, request, &facts, err);
 *   weir_session_step_start(session, request, &end, &step, err);
 *
 * A request's fetches are read here for their values only, and its feeds for
 * values and shapes. All but step_start may block. Any thread. */

/* The session's own graph; lent for the session's life. */
const weir_graph *weir_session_graph(const weir_exec_session *session);

/* The cut of the program of |request|; the caller's. Errors: W0004, W4009,
 * W4011, W4012, the ops' own, W6001. */
weir_status weir_session_cut_of(weir_exec_session *session,
                                const weir_exec_request *request,
                                weir_cut **out_cut, weir_error *err);

/* Programs of |plan|'s cut are placed by it from here on, and use |channel| to
 * other tasks; the first plan that was added for a cut counts. Takes |channel|
 * on success, and releases it when neither the list nor a program needs it.
 * Errors: W6001. */
weir_status weir_session_add_plan(weir_exec_session *session,
                                  const weir_plan *plan, weir_channel *channel,
                                  weir_error *err);
/* Takes |plan| off the list. Programs made by it keep it. */
void weir_session_remove_plan(weir_exec_session *session,
                              const weir_plan *plan);

typedef struct weir_program_facts {
  bool writes; /* parts here assign variables */
  uint64_t memory_bytes;
} weir_program_facts;

/* Compiles the program of |request|, unless it is there. Errors: the
 * compiler's, those of first values, W6001. */
weir_status weir_session_prepare(weir_exec_session *session,
                                 const weir_exec_request *request,
                                 weir_program_facts *out, weir_error *err);

/* ---- For the session. */

/* The route of cut |hash|, with a reference; NULL: none. */
weir_route *weir_session_route_find(weir_exec_session *session, uint64_t hash);
void weir_session_route_release(weir_exec_session *session,
                                weir_route *route); /* NULL-safe */
void weir_session_routes_release(weir_exec_session *session);

#endif
