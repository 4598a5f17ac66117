/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_GPU_MEMORY_H_
#define WEIR_EXEC_GPU_MEMORY_H_

#include "runtime/exec/gpu/gpus.h"

/* Memory of GPUs that other processes use too, and what else is made of it:
 * queues, events, pinned memory of the host, handles of products.
 *
 *   weir_gpu_wait wait = {0};
 *   do
 *     s = work_that_allocates(err);
 *   while (s != WEIR_OK && weir_gpu_wait_more(gpu, &wait, &s, err));
 *
 * The work holds nothing when it has failed, and the caller no lock. */

/* What ends the waits of a thread before their time: that of the run they are
 * made for. */
typedef struct weir_gpu_stop {
  const atomic_bool *cancel; /* NULL: nobody */
  int64_t deadline_ns;       /* on the env's clock; 0: none */
} weir_gpu_stop;

/* From now on |stop|, which is lent, holds for waits of this thread; gives what
 * held before, which the caller sets again. NULL: nothing. Waits are deep in
 * loading and compiling, which know of no run. */
const weir_gpu_stop *weir_gpu_stop_set(const weir_gpu_stop *stop);

/* A wait for memory; zeros: it has not begun. */
typedef struct weir_gpu_wait {
  int64_t from_ns, nap_ns;
} weir_gpu_wait;

/* Whether work that failed with |err| (may be NULL) is to be tried again:
 * sleeps and returns true when memory is what it lacked (W6001) and the time of
 * weir_gpus_options.wait_ns is not over. At the end of a wait |err| says how
 * long it was; one that was stopped is |*status| and |err| of a run that is
 * (W5005, W5006). |gpu| NULL: false. */
bool weir_gpu_wait_more(const weir_exec_gpu *gpu, weir_gpu_wait *wait,
                        weir_status *status, weir_error *err);

/* The same before there is a GPU, for |wait_ns| at most. */
bool weir_gpu_wait_for(const weir_env *env, int64_t wait_ns,
                       weir_gpu_wait *wait, weir_status *status,
                       weir_error *err);

/* A buffer of |gpu|. Does not wait. Errors: W6001, W6002 with a hint, W6004. */
weir_status weir_gpu_alloc(weir_exec_gpu *gpu, size_t bytes,
                           weir_device_buffer *out_buffer, weir_error *err);

/* The same, and waits. No lock is held. */
weir_status weir_gpu_alloc_waiting(weir_exec_gpu *gpu, size_t bytes,
                                   weir_device_buffer *out_buffer,
                                   weir_error *err);

/* host_alloc, queue_create and event_create of the device, the same way. */
weir_status weir_gpu_host_alloc_waiting(weir_exec_gpu *gpu, size_t bytes,
                                        void **out_data, weir_error *err);
weir_status weir_gpu_queue_waiting(weir_exec_gpu *gpu, weir_queue **out_queue,
                                   weir_error *err);
weir_status weir_gpu_event_waiting(weir_exec_gpu *gpu, weir_event **out_event,
                                   weir_error *err);

#endif
