/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_RUN_SLOW_H_
#define WEIR_EXEC_RUN_SLOW_H_

#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/run/frame.h"

/* Runs a frame that is traced, has traps or has failed. */

/* Runs instructions [first, last), each looked at: poison, trace, traps. */
void weir_frame_run_slow(weir_frame *frame, const weir_exec_ctx *ctx,
                         uint32_t first, uint32_t last);

/* Runs all of a nested frame and looks for NaN after each instruction; |*at| is
 * the one that failed. */
weir_status weir_frame_run_trapped(weir_frame *frame, const weir_exec_ctx *ctx,
                                   weir_error *err, uint32_t *at);

/* The same with an event for each instruction, and no look for NaN. */
weir_status weir_frame_run_timed(weir_frame *frame, const weir_exec_ctx *ctx,
                                 weir_error *err, uint32_t *at);

/* Notes that |instr| failed. |err| holds its error, perhaps an empty one. */
void weir_frame_fail(weir_frame *frame, uint32_t instr, weir_status status,
                     weir_error *err);

/* Poisons the outputs of |instr| where an input is, or with those of |by|, an
 * instruction that failed; whether it did. Any thread: for a GPU's part, where
 * failures are told after later instructions were queued. */
bool weir_frame_pass_poison(weir_frame *frame, uint32_t instr);
void weir_frame_poison_by(weir_frame *frame, uint32_t instr, uint32_t by);

/* Fails with W5004 unless |data|, all of output |output|, |value|, is finite.
 */
weir_status weir_frame_trap_value(const weir_pvalue *value, uint32_t output,
                                  const void *data, weir_error *err);

/* Names the node, its inputs' shapes and its place in |err|. */
void weir_program_blame(const weir_program *program, uint32_t instr,
                        weir_status status, weir_error *err);

/* The name of a kind in traces; static. */
const char *weir_instr_category(weir_instr_kind kind);

/* Adds an event to the run's trace. */
void weir_frame_trace(weir_frame *frame, uint32_t instr, int64_t start_ns,
                      int64_t end_ns, int thread);
/* The same of work whose length the device's own clock has told. */
void weir_frame_trace_device(weir_frame *frame, uint32_t instr,
                             int64_t start_ns, int64_t end_ns);

/* weir_run_ctx.hold: holds the instruction back for |ns|, or until the run must
 * stop; |spin|: without sleeping. */
void weir_frame_hold(void *self, int64_t ns, bool spin);

#endif
