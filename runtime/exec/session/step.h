/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_STEP_H_
#define WEIR_EXEC_STEP_H_

#include "runtime/exec/session/session.h"

/* Steps: runs of a session that nobody waits for, and whose new values wait for
 * a decision. For a task of a cluster: one thread starts many, hears of each
 * when it has ended, and says later whether its assignments count.
 *
 *   weir_session_step_start(session, request, &end, &step, err)
 *     ... end.done(self, step, result), once, on any thread
 *   weir_exec_step_commit(step)  or  weir_exec_step_abort(step, why)
 *
 * None of these calls blocks. Steps that assign do so in the order in which
 * they were started, also where one of them is compiled first. A step of a
 * program that assigns ends *prepared*: its new values lie in the spare
 * buffers, readers see the last commit, and the next step that assigns is
 * queued until the decision. Other steps run meanwhile, any number at once.
 * weir_exec_run and weir_exec_variable_set wait for the decision like the
 * queued steps do: not for the thread that decides.
 *
 * Each step that was started is ended by exactly one commit or abort, at the
 * latest before its session is released. |end.done| is called also for a step
 * that was aborted before. Programs are compiled, and variables get their first
 * values, on a thread of the pool; a small step that needs neither runs within
 * its start. */

typedef struct weir_exec_step weir_exec_step;

/* A fetch of a step. |order|: the place, in the program's graph, of the node
 * that failed first and is the cause; UINT32_MAX: none is (stopped, refused).
 * It is the same number in every process that runs a part of the graph. */
typedef struct weir_exec_step_fetch {
  weir_tensor *tensor; /* to keep it, take the reference and leave NULL */
  weir_status status;
  uint32_t order;
  weir_error error; /* unless |status| is WEIR_OK */
} weir_exec_step_fetch;

/* Lent for the call. Of the steps' failures in several processes the one with
 * the lowest |order| is the first in the graph. */
typedef struct weir_exec_step_result {
  weir_status status;
  const weir_error *err; /* of the first failed node; NULL: none failed */
  uint32_t order;        /* as above */
  bool prepared;         /* new values wait for commit or abort */
  weir_exec_step_fetch *fetches; /* in the request's order */
  uint32_t fetch_count;
} weir_exec_step_result;

typedef struct weir_exec_step_end {
  void (*done)(void *self, weir_exec_step *step,
               const weir_exec_step_result *result);
  void *self;
} weir_exec_step_end;

/* Starts a run of |request|, in ids of the session's own graph. Its lists and
 * options are copied and its tensors get references; the pointers of the
 * options must stay good until |end.done|, which gets the fetches (|request|'s
 * are not written). Errors: W6001, W6003, W9001 (a session whose programs run
 * elsewhere): then nothing was started. All else is told by |end.done|, perhaps
 * before the return. */
weir_status weir_session_step_start(weir_exec_session *session,
                                    const weir_exec_request *request,
                                    const weir_exec_step_end *end,
                                    weir_exec_step **out_step, weir_error *err);

/* The step must have ended, its |end.done| begun. A prepared step's new values
 * become current, all at once. Ends the handle. Any thread. */
void weir_exec_step_commit(weir_exec_step *step);

/* Drops the new values. A step under way is stopped: its waits end with |why|
 * and its step of the session's channel is dropped; one that is queued ends at
 * once, in this thread. NULL: W5005. Ends the handle. Any thread. */
void weir_exec_step_abort(weir_exec_step *step, const weir_error *why);

#endif
