/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_GPU_LOOK_H_
#define WEIR_EXEC_GPU_LOOK_H_

#include "runtime/exec/gpu/gpu_frame.h"

/* Where the host looks at values in the middle of a GPU's queue: it waits for
 * all that was queued. Errors: those of the device. */

/* Returns when the queue's work has ended, or the GPU is lost. */
weir_status weir_gpu_look_wait(weir_gpu_frame *gpu, weir_error *err);

/* Copies |bytes| bytes at |at|, in the GPU's memory, to |out|; at most
 * WEIR_GPU_ASKED of them. |*out_over|: a body has refused data before, so
 * nobody will read what comes next, and |out| may be anything. */
weir_status weir_gpu_look_ask(weir_gpu_frame *gpu, const void *at, size_t bytes,
                              void *out, bool *out_over, weir_error *err);

/* Fails (W5004) where an output of |instr|, which has ended, is not finite;
 * |io| is its row of the table. W6001. */
weir_status weir_gpu_look_trap(const weir_frame *frame, uint32_t instr,
                               void *const *io, weir_error *err);

#endif
