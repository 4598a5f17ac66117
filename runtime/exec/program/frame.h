/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_FRAME_H_
#define WEIR_EXEC_FRAME_H_

#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/session/session.h"

/* A Frame is what one run of a program writes: its memory, its table of operand
 * pointers, its counters. Made once, used for many runs, one at a time:
 *
 *   weir_frame_create(program, &frame, err);
 *   weir_frame_set_external(frame, 0, x); ...   pointers stay until changed
 *   s = weir_frame_run(frame, pool, options, err);   no allocation
 *   weir_frame_fetch_status(frame, k, err);     after a failed run
 *   weir_frame_release(frame); */

enum { WEIR_FRAME_FAILURES = 4 };

typedef struct weir_frame weir_frame;

/* A task of this frame, as the pool sees it. */
typedef struct weir_frame_task weir_frame_task;
struct weir_frame_task {
  weir_task task;
  weir_frame *frame;
  uint32_t index;
  atomic_uint waits;
  weir_channel_done done; /* async tasks */
  weir_collective part;
  int64_t start_ns; /* async, for a trace */
  /* Of a device that steps share (stream.h). */
  weir_frame_task *next_waiting;
  bool has_stream;
};

struct weir_frame {
  const weir_program *program;
  void **table;
  char *memory;
  weir_frame_task *tasks;
  weir_frame **children;
  uint8_t *poison;      /* per value: 0, or 1 + its cause in |failures| */
  weir_error *failures; /* NULL in nested frames */
  uint32_t *failure_orders;
  bool owns_memory;
  weir_frame *next_free; /* of the pool of frames */
  /* Parts of the program have a frame each. */
  weir_frame *head, *next_part;
  struct weir_stream *stream; /* the device, if steps share it; lent */
  weir_channel *channel; /* the head's, joins the parts of a run; or NULL */
  /* Of the run under way. */
  weir_pool *pool;
  weir_run_options options;
  int64_t start_ns;
  bool watch;           /* cancel or deadline given */
  atomic_bool slow;     /* each instruction is looked at: trace, failures ... */
  atomic_int stopped;   /* weir_status: cancelled or out of time */
  atomic_int remaining; /* the head's counts for all parts */
  atomic_int failed;    /* failures so far */
  pthread_mutex_t failure_lock;
};

/* A frame for all of the program's parts. Errors: W6001. */
weir_status weir_frame_create(const weir_program *program,
                              weir_frame **out_frame, weir_error *err);
void weir_frame_release(weir_frame *frame); /* NULL-safe */
/* Tells the parts which devices they run on: |streams|, one per part, lent. */
void weir_frame_share(weir_frame *frame, struct weir_stream *streams);
/* Where external |external| is from now on. */
void weir_frame_set_external(weir_frame *frame, uint32_t external, void *data);
/* Runs once; blocks. Returns the failure of the first node. |options| may be
 * NULL. The pool is needed by programs that are not cheap; NULL: one thread. */
weir_status weir_frame_run(weir_frame *frame, weir_pool *pool,
                           const weir_run_options *options, weir_error *err);
/* Whether fetch |fetch| of the last run holds its value; else why not. */
weir_status weir_frame_fetch_status(const weir_frame *frame, uint32_t fetch,
                                    weir_error *err);
/* The same for any value of the program. */
weir_status weir_frame_value_status(const weir_frame *frame, uint32_t value,
                                    weir_error *err);

/* ---- For instructions: the frame behind their run context. */
typedef struct weir_exec_ctx {
  weir_run_ctx base;
  weir_frame *frame;
  weir_worker *worker; /* NULL: the caller alone */
} weir_exec_ctx;

static inline const weir_exec_ctx *weir_exec_of(const weir_args *args) {
  return (const weir_exec_ctx *)args->ctx;
}

/* Runs a nested frame within an instruction. */
weir_status weir_frame_run_nested(weir_frame *child, const weir_args *args);
/* The same for turn |turn| of a loop: random ops draw other numbers. */
weir_status weir_frame_run_turn(weir_frame *child, const weir_args *args,
                                int64_t turn);
/* WEIR_OK, or why the run must stop now. */
weir_status weir_frame_check_stop(weir_frame *frame);
/* ---- Parts of the executor. */

/* Runs instructions [first, last), each looked at: poison, trace, traps. */
void weir_frame_run_slow(weir_frame *frame, const weir_exec_ctx *ctx,
                         uint32_t first, uint32_t last);
/* Runs all of a nested frame and looks for NaN after each instruction; |*at| is
 * the one that failed. */
weir_status weir_frame_run_trapped(weir_frame *frame, const weir_exec_ctx *ctx,
                                   weir_error *err, uint32_t *at);
/* Notes that |instr| failed. |err| holds what it said, perhaps nothing. */
void weir_frame_fail(weir_frame *frame, uint32_t instr, weir_status status,
                     weir_error *err);
/* Names the node, its inputs' shapes and its place in |err|. */
void weir_program_blame(const weir_program *program, uint32_t instr,
                        weir_status status, weir_error *err);
/* Starts an async task; it ends by weir_frame_task_end. */
void weir_comm_start(weir_frame_task *task, uint64_t step);
/* Tells the other end that |task| will not be started. */
void weir_comm_refuse(weir_frame_task *task, uint64_t step,
                      const weir_error *why);
/* Adds an event to the run's trace. */
void weir_frame_trace(weir_frame *frame, uint32_t instr, int64_t start_ns,
                      int64_t end_ns, int thread);
/* Why the run was told to stop. */
weir_status weir_frame_stop_error(weir_status stopped, weir_error *err);
/* Ends a task that a callback ended, on any thread. */
void weir_frame_task_end(weir_frame_task *task);
void weir_frame_hold(void *self, int64_t ns, bool spin);

#endif
