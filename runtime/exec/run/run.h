/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_RUN_H_
#define WEIR_EXEC_RUN_H_

#include "runtime/exec/run/frame.h"

/* Runs a frame. */

/* Runs once; blocks. Returns the failure of the first node. |options| may be
 * NULL. The pool is needed by programs that are not cheap; NULL: one thread. */
weir_status weir_frame_run(weir_frame *frame, weir_pool *pool,
                           const weir_run_options *options, weir_error *err);

/* Whether fetch |fetch| of the last run holds its value; else why not. */
weir_status weir_frame_fetch_status(const weir_frame *frame, uint32_t fetch,
                                    weir_error *err);

/* Runs a nested frame within an instruction. */
weir_status weir_frame_run_nested(weir_frame *child, const weir_args *args);

/* The same for turn |turn| of a loop: random ops draw other numbers. */
weir_status weir_frame_run_turn(weir_frame *child, const weir_args *args,
                                int64_t turn);

/* WEIR_OK, or why the run must stop now. */
weir_status weir_frame_check_stop(weir_frame *frame);

/* Ends a task that a callback ended, on any thread. */
void weir_frame_task_end(weir_frame_task *task);

#endif
