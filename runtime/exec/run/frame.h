/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_FRAME_H_
#define WEIR_EXEC_FRAME_H_

#include "runtime/exec/pool_watch.h"
#include "runtime/exec/program/program.h"
#include "runtime/exec/session/session.h"

/* A Frame holds all that one run of a program writes: its memory, its table of
 * operand pointers, its counters. Made once, used for many runs, one at a time:
 *
 *   weir_frame_create(program, &frame, err);
 *   weir_frame_set_external(frame, 0, x); ...   pointers stay until changed
 *   s = weir_frame_run(frame, pool, options, err);   no allocation
 *   weir_frame_fetch_status(frame, k, err);     after a failed run
 *   weir_frame_release(frame);
 *
 * or, without a thread that waits:
 *
 *   s = weir_frame_start(frame, pool, options, &end, err);  returns at once
 *   end.done(end.self, status, err)                         when it has ended
 */

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
  weir_channel_sink sink; /* of a receive that computes (recv_pieces.h) */
  weir_collective part;
  int64_t start_ns; /* async, for a trace */
  /* Of a device that steps share (stream.h). */
  weir_frame_task *next_waiting;
  bool has_stream;
  bool refused; /* the other end has been told that nothing comes */
};

/* The end of a started run. |done| is called once, after the last instruction,
 * when nothing touches the frame any more: it may start or release it. On a
 * thread of the pool, or the one that starts when all ends at once. |err| is
 * lent for the call; NULL when |status| is OK. */
typedef struct weir_frame_end {
  void (*done)(void *self, weir_status status, const weir_error *err);
  void *self;
} weir_frame_end;

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
  struct weir_gpu_frame *gpu; /* exec/gpu; NULL: the host's part, a body's */
  uint32_t number;            /* of its first instruction, among its own, from
                                 0, and those of bodies' frames, from there */
  weir_frame *next_free;      /* of the pool of frames */
  /* Parts of the program have a frame each. */
  weir_frame *head, *next_part;
  struct weir_stream *stream; /* the device, if steps share it; lent */
  weir_channel *channel; /* the head's, joins the parts of a run; or NULL */
  uint64_t channel_runs; /* the head's: the number of the run on |channel| */
  weir_channel *outer;   /* the head's: to other tasks; lent, or NULL */
  /* The head's, of all parts: some instruction sends or receives, does so over
   * |channel|, does so over |outer|. */
  bool comm, comm_channel, comm_outer;
  /* Of the run under way. */
  weir_pool *pool;
  weir_run_options options;
  int64_t start_ns;
  bool watch;           /* cancel or deadline given */
  atomic_bool slow;     /* each instruction is looked at: trace, failures ... */
  atomic_int stopped;   /* weir_status: cancelled or out of time */
  atomic_int remaining; /* the head's: tasks of all parts, and watchers */
  weir_frame_end end;   /* the head's; |done| NULL: somebody waits */
  weir_task ending;     /* the head's: calls |end| on a thread of the pool */
  weir_watch looks;     /* the head's */
  bool looked_at;       /* |looks| is the pool's */
  atomic_int failed;    /* failures so far */
  pthread_mutex_t failure_lock;
};

/* A frame for all of the program's parts. Errors: W6001. */
weir_status weir_frame_create(const weir_program *program,
                              weir_frame **out_frame, weir_error *err);
void weir_frame_release(weir_frame *frame); /* NULL-safe */
/* Gives the parts their devices: |streams|, one per part, lent. */
void weir_frame_share(weir_frame *frame, struct weir_stream *streams);
/* The channel to other tasks, lent; see weir_run_options.channel_step. */
void weir_frame_set_channel(weir_frame *frame, weir_channel *outer);
/* Where external |external| is from now on. */
void weir_frame_set_external(weir_frame *frame, uint32_t external, void *data);
/* Where it is, of a program of one part that has such an operand; else NULL. */
void *weir_frame_external(const weir_frame *frame, uint32_t external);

/* ---- For instructions: the frame behind their run context. */
typedef struct weir_exec_ctx {
  weir_run_ctx base;
  weir_frame *frame;
  weir_worker *worker;        /* NULL: the caller alone */
  uint64_t turns;             /* of the loops around; 0: none */
  struct weir_gpu_frame *gpu; /* of the part's frame; NULL: it is the host's */
} weir_exec_ctx;

/* The frame of number |number| of |frame|, which is no body's: |frame| or one
 * in it, its instruction, and |frame|'s own instruction around that. */
const weir_frame *weir_frame_numbered(const weir_frame *frame, uint32_t number,
                                      uint32_t *out_instr, uint32_t *out_own);

static inline const weir_exec_ctx *weir_exec_of(const weir_args *args) {
  return (const weir_exec_ctx *)args->ctx;
}

#endif
