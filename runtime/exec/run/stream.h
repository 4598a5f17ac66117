/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_STREAM_H_
#define WEIR_EXEC_STREAM_H_

#include <pthread.h>

#include "runtime/exec/run/frame.h"

/* A device that several steps of a placed program share.
 *
 * Steps under way at once are frames of the same program; their tasks on one
 * device run one at a time, the earliest step's first. So micro-batches follow
 * each other through the stages of a pipeline, and a stage that has both the
 * backward work of an early one and the forward work of a later one does the
 * former (one forward, one backward, as PipeDream's schedule: Narayanan et al.,
 * SOSP 2019). Any thread. */

typedef struct weir_stream {
  pthread_mutex_t lock;
  bool busy;
  weir_frame_task *waiting; /* a list, in no order */
} weir_stream;

/* |count| of them; NULL: out of memory. */
weir_stream *weir_streams_create(const weir_allocator *alloc, uint32_t count);
void weir_streams_release(const weir_allocator *alloc, weir_stream *streams,
                          uint32_t count); /* NULL-safe */

/* Whether |task| has the device now; if not, it waits for it and is handed back
 * by a later leave, which gives it the device. */
bool weir_stream_enter(weir_stream *stream, weir_frame_task *task);
/* Gives the device to the waiting task of the earliest step, which the caller
 * makes ready; NULL: none waits. */
weir_frame_task *weir_stream_leave(weir_stream *stream);

#endif
