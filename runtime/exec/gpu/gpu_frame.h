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
 * what bodies found wrong with the data.
 *
 * A task's work is kept as a graph when it comes with the same addresses for
 * the second time, and replayed from then on, unless the run has a trace, looks
 * for NaN or has failed, or the device would not keep it. */

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
  uint32_t *slots, slot_count;
  void **keys;
  struct weir_gpu_graph *graphs;
  uint64_t clock;
  uint32_t moves; /* addresses that came once */
} weir_gpu_task;

typedef struct weir_gpu_frame {
  weir_exec_gpu *gpu;
  weir_queue *queue;
  weir_event *looked; /* for a trace and for traps, which wait */
  weir_device_buffer memory, block;
  char *staged;
  weir_body_block *begin; /* what the block is at first */
  weir_body_block *found; /* per task */
  weir_status begun;      /* of this run: whether the block was written, */
  weir_error why;         /* and why not */
  weir_gpu_task *tasks;
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

/* Has the end told, from here on at any time: the GPU's thread calls
 * weir_gpu_task_ended (run_tasks.h), or, where outputs are large, hands the
 * task to the pool once more: weir_gpu_frame_is_over says so. */
void weir_gpu_frame_await(weir_frame_task *task);

/* Whether |task| is back to copy its outputs; what |finish| then does. */
bool weir_gpu_frame_is_over(const weir_frame_task *task);
void weir_gpu_frame_finish(weir_frame_task *task, weir_worker *worker);

#endif
