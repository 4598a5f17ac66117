/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_GPU_TURN_H_
#define WEIR_EXEC_GPU_TURN_H_

#include "runtime/exec/gpu/gpus.h"
#include "runtime/exec/run/frame.h"

/* Turns of processes that use the same GPU (`share: queue` of a cluster).
 *
 * A process has the turn from before the work of a task is queued until that
 * work has ended: never while a run waits for a peer, or for another GPU. So
 * whoever has a turn gives it back by itself, and two processes of one job that
 * exchange values cannot wait for each other. Tasks of the process that come
 * meanwhile join its turn, for WEIR_GPU_TURN_NS at most: then they wait for the
 * next one.
 *
 * The turn is a locked file, GPU-<uuid>.turn in the folder of locks; the system
 * drops the lock of a process that ends, however it ends. A second one,
 * GPU-<uuid>.next, is the place of the one who has the next turn: a process
 * that has given its turn back stands behind that one, and so no process has
 * two turns while another waits for its first. Among those that wait for the
 * place there is no order.
 *
 * No thread of the pool waits: a task that has no turn is put aside, and the
 * GPU's thread, which has no ends to wait for then, tries and hands it back. */

enum { WEIR_GPU_TURN_NS = 50000000 };

/* Whether a task of a GPU's part may queue its work. */
typedef enum weir_gpu_turn_state {
  WEIR_GPU_TURN_NONE,   /* it has not asked, or its GPU is not used in turns */
  WEIR_GPU_TURN_HAS,    /* until weir_gpu_turn_leave */
  WEIR_GPU_TURN_REFUSED /* its run was stopped, or the lock cannot be had */
} weir_gpu_turn_state;

/* Makes |gpu->turn|, with the files of |id|, a GPU's name on this machine; the
 * same again does nothing. |gpu|'s thread has begun. Errors: W6003 with a
 * hint, W6001. */
weir_status weir_gpu_turn_open(weir_exec_gpu *gpu, const char *id,
                               weir_error *err);
/* No task waits. NULL-safe. */
void weir_gpu_turn_close(weir_exec_gpu *gpu);

/* Whether |task|, of a GPU's part, may go on; if not, it is handed to its pool
 * again later. */
bool weir_gpu_turn_enter(weir_frame_task *task);
/* false: the task was refused for |*out_status| and |err|. */
bool weir_gpu_turn_granted(const weir_frame_task *task, weir_status *out_status,
                           weir_error *err);
/* The work of |task| has ended, or there is none. */
void weir_gpu_turn_leave(weir_frame_task *task);

/* ---- For the GPU's thread. */

/* Whether a task waits; |gpu->lock| is held. */
bool weir_gpu_turn_is_wanted(const weir_exec_gpu *gpu);
/* Tries, and takes the tasks that may go on; |gpu->lock| is held. NULL: none,
 * and |*out_nap_ns| says when to try again. */
weir_frame_task *weir_gpu_turn_try(weir_exec_gpu *gpu, int64_t *out_nap_ns);
/* Gives them to their pools; without the lock. */
void weir_gpu_turn_hand_out(weir_frame_task *tasks);

#endif
