/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/run/stream.h"

#include <assert.h>

/* A lock, a flag and a list. The device is handed from task to task: leave
 * keeps it busy for the task that it returns, so no newcomer comes between.
 * leave looks through all waiting tasks: they are as many as steps in flight at
 * most, and the earliest must go first. */

weir_stream *weir_streams_create(const weir_allocator *alloc, uint32_t count) {
  weir_stream *streams = weir_alloc_array(alloc, count, sizeof *streams);
  for (uint32_t i = 0; streams != NULL && i < count; i++)
    pthread_mutex_init(&streams[i].lock, NULL);
  return streams;
}

void weir_streams_release(const weir_allocator *alloc, weir_stream *streams,
                          uint32_t count) {
  for (uint32_t i = 0; streams != NULL && i < count; i++)
    pthread_mutex_destroy(&streams[i].lock);
  weir_free(alloc, streams);
}

bool weir_stream_enter(weir_stream *s, weir_frame_task *task) {
  if (task->has_stream) return true;
  pthread_mutex_lock(&s->lock);
  bool got = !s->busy;
  s->busy = true;
  task->has_stream = got;
  if (!got) {
    task->next_waiting = s->waiting;
    s->waiting = task;
  }
  pthread_mutex_unlock(&s->lock);
  return got;
}

weir_frame_task *weir_stream_leave(weir_stream *s) {
  pthread_mutex_lock(&s->lock);
  assert(s->busy);
  weir_frame_task **best = &s->waiting;
  for (weir_frame_task **t = &s->waiting; *t != NULL; t = &(*t)->next_waiting)
    if ((*t)->frame->options.step < (*best)->frame->options.step) best = t;
  weir_frame_task *next = *best;
  s->busy = next != NULL;
  if (next != NULL) {
    *best = next->next_waiting;
    next->has_stream = true;
  }
  pthread_mutex_unlock(&s->lock);
  return next;
}
