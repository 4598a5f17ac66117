/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_BINDING_H_
#define WEIR_EXEC_BINDING_H_

#include "runtime/exec/program/program_held.h"
#include "runtime/exec/session/session.h"

/* Feeds and fetches that are fixed for many runs. */

/* Fixes feeds and fetches: the tensors' memory is read and written by each run
 * of the binding; the caller changes its content between runs. Inputs' and
 * outputs' references are held until release. One run at a time per binding;
 * several bindings of a session run at once. */
weir_status weir_exec_bind(weir_exec_session *session,
                           const weir_exec_request *request,
                           weir_binding **out_binding, weir_error *err);

/* No look-up, no allocation. |options| may be NULL. */
weir_status weir_binding_run(weir_binding *binding,
                             const weir_run_options *options, weir_error *err);

/* Feeds another tensor of the same type from now on, by the place of the feed
 * in the request. NULL: it is to be fed again before the next run. Between
 * runs; not of a placed program, nor after overlapped runs. */
void weir_binding_feed(weir_binding *binding, uint32_t input,
                       weir_tensor *tensor);

/* Of a session that overwrites: the variable whose new value a run may write
 * over that feed (weir_exec_variable_room); UINT32_MAX: none. */
weir_node_id weir_binding_over(const weir_binding *binding, uint32_t input);

void weir_binding_release(weir_binding *binding); /* NULL-safe */

/* Steps options->step, +1, ... Stops at the first failure and returns it. The
 * first call allocates the lanes. */
weir_status weir_binding_run_overlapped(weir_binding *binding,
                                        const weir_overlap_options *overlap,
                                        const weir_run_options *options,
                                        weir_error *err);

/* The graph that the binding's program carries out, whose nodes its trace
 * events name; lent. */
const weir_graph *weir_binding_graph(const weir_binding *binding);

/* Figures of the binding's program. */
weir_program_stats weir_binding_stats(const weir_binding *binding);

/* The memory of part |part| of the binding's program and the device that it is
 * for, of the plan's cluster (0 where there is no plan). |*there| is false
 * behind the last part. Errors: W6001. */
weir_status weir_binding_memory(const weir_binding *binding, uint32_t part,
                                bool *there, uint32_t *device,
                                weir_program_memory *out, weir_error *err);

/* weir_program_describe of the binding's program. */
bool weir_binding_describe(const weir_binding *binding, const weir_writer *out);

/* weir_exec_bind in ids of the session's own graph. */
weir_status weir_session_own_bind(weir_exec_session *session,
                                  const weir_exec_request *request,
                                  weir_binding **out_binding, weir_error *err);

#endif
