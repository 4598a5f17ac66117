/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_GPU_TRACE_H_
#define WEIR_EXEC_GPU_TRACE_H_

#include "runtime/exec/gpu/gpu_frame.h"

/* Times of a task's instructions by the GPU's own clock, for a trace.
 *
 *   weir_gpu_trace_begin(task, err);            before its first instruction
 *   weir_gpu_trace_mark(task, instr, err);      each is queued
 *   weir_gpu_trace_tell(task, err);             the task has ended
 *
 * Nobody waits between instructions: the queue is filled as in any run, and
 * an instruction's time is that from the mark before it to its own. */

typedef struct weir_gpu_trace {
  weir_event **marks;
  uint32_t *instrs; /* per mark: what was queued before it, or NO_INDEX */
  uint32_t made, used;
  int64_t mark_ns; /* that a mark takes, the least seen */
} weir_gpu_trace;

/* Errors: those of the device, W6001. */
weir_status weir_gpu_trace_begin(weir_gpu_task *task, weir_error *err);
/* |instr| WEIR_NO_INDEX: time up to here is no instruction's. */
weir_status weir_gpu_trace_mark(weir_gpu_task *task, uint32_t instr,
                                weir_error *err);
/* Adds an event for each instruction to the run's trace; none where begin was
 * not called since. Errors: those of the device. */
weir_status weir_gpu_trace_tell(weir_gpu_task *task, weir_error *err);
void weir_gpu_trace_release(weir_gpu_task *task); /* with the frame */

#endif
