/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_RUN_TASKS_H_
#define WEIR_EXEC_RUN_TASKS_H_

#include "runtime/exec/run/frame.h"

/* Runs of many tasks, and runs that nobody waits for. */

/* Starts a run and returns; |end| is called when it has ended (see there), also
 * when no thread ever waits for it. |options| is copied; its pointers must stay
 * good until then. Never blocks; a cheap program is run at once. On failure
 * nothing runs and |end| is not called. Errors: W6001, W6003, W9001. */
weir_status weir_frame_start(weir_frame *frame, weir_pool *pool,
                             const weir_run_options *options,
                             const weir_frame_end *end, weir_error *err);

/* Stops the run under way, if there is one: no more instructions begin, calls
 * that wait for a peer end with |why|, and its step is dropped. The run ends
 * soon after, with W5006 when |why| is a deadline, else W5005. Any thread; the
 * frame must not be released or run again meanwhile. */
void weir_frame_stop(weir_frame *frame, const weir_error *why);

/* All tasks of all parts, after weir_frame_begin; gives |worker| back. */
void weir_frame_run_tasks(weir_frame *head, weir_worker *worker);

/* Ends a task that a callback ended, on any thread. */
void weir_frame_task_end(weir_frame_task *task);

/* Has the end of |task|, a receive whose copy is queued, awaited
 * (weir_gpu_frame_await), and tells the tasks that queue work after it. */
void weir_gpu_task_queued(weir_frame_task *task);

/* Ends a task of a GPU's part whose work has ended, on any thread. */
void weir_gpu_task_ended(weir_frame_task *task);

#endif
