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

/* The order of the node that is the cause, WEIR_NO_INDEX: of none. */
uint32_t weir_frame_fetch_order(const weir_frame *frame, uint32_t fetch);

/* The order of the first node that failed in the last run, of all parts. */
uint32_t weir_frame_first_order(const weir_frame *head);

/* Runs a nested frame within an instruction. */
weir_status weir_frame_run_nested(weir_frame *child, const weir_args *args);

/* The same for turn |turn| of a loop: random ops draw other numbers. */
weir_status weir_frame_run_turn(weir_frame *child, const weir_args *args,
                                int64_t turn);

/* WEIR_OK, or why the run must stop now. */
weir_status weir_frame_check_stop(weir_frame *frame);

/* ---- For run_tasks.c. */

/* Readies a run; makes the channel that its parts need. Errors: W6001, W9001.
 */
weir_status weir_frame_begin(weir_frame *head, weir_pool *pool,
                             const weir_run_options *options, weir_error *err);

/* Instructions [first, last) of one part, in this thread. */
void weir_frame_run_range(weir_frame *frame, weir_worker *worker,
                          uint32_t first, uint32_t last);

/* How the run ended, once all its tasks have. */
weir_status weir_frame_result(weir_frame *head, weir_error *err);

/* Why the run had to stop. */
weir_status weir_frame_stop_error(weir_status stopped, weir_error *err);

/* Why |value| did not come out; OK when it did. */
weir_status weir_frame_value_status(const weir_frame *frame, uint32_t value,
                                    weir_error *err);

#endif
