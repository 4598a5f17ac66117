/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_GPU_MEMORY_H_
#define WEIR_EXEC_GPU_MEMORY_H_

#include "runtime/exec/gpu/gpus.h"

/* Memory of GPUs that other processes use too.
 *
 *   weir_gpu_wait wait = {0};
 *   do
 *     s = work_that_allocates(err);
 *   while (s != WEIR_OK && weir_gpu_wait_more(gpu, &wait, err));
 *
 * The work holds nothing when it has failed, and the caller no lock. */

/* A wait for memory; zeros: it has not begun. */
typedef struct weir_gpu_wait {
  int64_t from_ns, nap_ns;
} weir_gpu_wait;

/* Whether work that failed with |err| (may be NULL) is to be tried again:
 * sleeps and returns true when memory is what it lacked (W6001) and the time of
 * weir_gpus_options.wait_ns is not over. At the end of a wait |err| says how
 * long it was. |gpu| NULL: false. */
bool weir_gpu_wait_more(const weir_exec_gpu *gpu, weir_gpu_wait *wait,
                        weir_error *err);

/* The same before there is a GPU, for |wait_ns| at most. */
bool weir_gpu_wait_for(const weir_env *env, int64_t wait_ns,
                       weir_gpu_wait *wait, weir_error *err);

/* A buffer of |gpu|. Does not wait. Errors: W6001, W6002 with a hint, W6004. */
weir_status weir_gpu_alloc(weir_exec_gpu *gpu, size_t bytes,
                           weir_device_buffer *out_buffer, weir_error *err);

/* The same, and waits. No lock is held. */
weir_status weir_gpu_alloc_waiting(weir_exec_gpu *gpu, size_t bytes,
                                   weir_device_buffer *out_buffer,
                                   weir_error *err);

#endif
