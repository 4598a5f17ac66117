/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_GPU_FRAME_H_
#define WEIR_EXEC_GPU_FRAME_H_

#include "runtime/exec/gpu/gpus.h"
#include "runtime/exec/run/frame.h"

/* Frames of a GPU's part.
 *
 * A task of such a part ends twice: its work is queued, which lets the part's
 * next task follow, and the work has ended, which lets sends and the memory of
 * receives go on. The GPU's thread tells the latter, after it has looked at
 * what bodies found wrong with the data. A receive from another GPU ends twice
 * too (gpu_peer.h).
 *
 * A task's work is kept as a graph when it comes with the same addresses for
 * the second time, and replayed from then on, unless the run has a trace, looks
 * for NaN or has failed, or the device would not keep it. */

/* What a send between GPUs offers: a value in the memory of |gpu|. */
typedef struct weir_gpu_offer {
  weir_exec_gpu *gpu;
  void *value;
  weir_frame_task *from; /* the send, to be told of the end */
} weir_gpu_offer;

typedef struct weir_gpu_task {
  weir_gpu_end end;
  weir_frame_task *task;
  weir_body_block *found; /* what the block is when it has ended; in memory that
                             copies are quick to */
  /* gpu_graph.h */
  bool over;           /* its work has ended, its outputs are to be copied */
  uint8_t turn;        /* weir_gpu_turn_state */
  size_t output_bytes; /* that the host copies after it */
  bool never;          /* its work could not be kept */
  bool asks;           /* some instruction waits for data */
  int64_t calls;       /* of kernels, an estimate */
  uint32_t *slots, slot_count;
  void **keys;
  struct weir_gpu_graph *graphs;
  uint64_t clock;
  uint32_t moves;               /* addresses that came once */
  struct weir_gpu_trace *trace; /* gpu_trace.h; NULL: none yet */
  /* gpu_peer.h */
  weir_gpu_offer offer; /* of a send; or to a receive */
  atomic_int halves;    /* ends that a send still waits for */
  void (*sent)(weir_frame_task *task);
  uint32_t *arrivals, arrival_count; /* receives whose copies it waits for */
} weir_gpu_task;

/* What waits for a question (gpu_look.h): data, and what was refused so far. */
enum { WEIR_GPU_ASKED = 64 };
typedef struct weir_gpu_asked {
  weir_body_block block;
  char data[WEIR_GPU_ASKED];
} weir_gpu_asked;

typedef struct weir_gpu_frame {
  weir_exec_gpu *gpu;
  weir_queue *queue;
  weir_event *looked; /* for traps and questions, which wait */
  weir_device_buffer memory, block;
  char *staged;
  weir_body_block *begin; /* what the block is at first */
  weir_body_block *found; /* per task */
  weir_gpu_asked *asked;  /* behind |begin|, like that behind |found| */
  weir_status begun;      /* of this run: whether the block was written, */
  weir_error why;         /* and why not */
  weir_gpu_task *tasks;
  /* gpu_peer.h: copies from other GPUs; NULL where there are none. */
  pthread_mutex_t copy_lock;
  weir_queue *copies;
  weir_event *settled;
  uint32_t *arrivals; /* of all tasks */
} weir_gpu_frame;

/* Makes |frame->gpu|, with the memory of its program; |frame->tasks| are there.
 * After a failure too it is released. Errors: those of the device, W6001. */
weir_status weir_gpu_frame_create(weir_frame *frame, weir_error *err);
void weir_gpu_frame_release(weir_frame *frame); /* waits for its work */

/* Queues the instructions of |task|, after copies of the host that |worker|
 * shares out. Failures are those of the frame's instructions. */
void weir_gpu_frame_queue(weir_frame_task *task, weir_worker *worker);

/* Queues the end of |task|. false: the device could not, so its instructions
 * have failed and nobody will tell the end. */
bool weir_gpu_frame_end(weir_frame_task *task);

/* Queues all of |frame|, a body's in the part of |ctx->gpu|; |*at| is then the
 * instruction that failed. */
weir_status weir_gpu_frame_run_body(weir_frame *frame, const weir_exec_ctx *ctx,
                                    uint32_t *at, weir_error *err);

/* Has the end told, from here on at any time: the GPU's thread calls
 * weir_gpu_task_ended (run_tasks.h), or, where outputs are large, hands the
 * task to the pool once more: weir_gpu_frame_is_over says so. */
void weir_gpu_frame_await(weir_frame_task *task);

/* Whether |task| is back to copy its outputs; what |finish| then does. */
bool weir_gpu_frame_is_over(const weir_frame_task *task);
void weir_gpu_frame_finish(weir_frame_task *task, weir_worker *worker);

#endif
