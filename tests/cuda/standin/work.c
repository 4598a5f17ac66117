/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/standin/standin_internal.h"

/* Streams, events and copies.
 *
 * A call puts a work at the end of its stream; run() does works, and only when
 * somebody waits: those that the wait needs, in an order that their streams and
 * events leave open, and by the seed some of other streams. A recorded event is
 * a point, which outlives its event for as long as a work waits for it. Waits
 * are for points that were recorded before, so no circle can come about. */

typedef struct point {
  struct CUstream_st *stream;
  unsigned uses;
  bool done;
} point;

typedef struct work {
  struct work *next;
  enum { COPY, RUN, RECORD, WAIT, TASK } kind;
  void *dst;
  const void *src;
  void *kept; /* the bytes of |src|, read at once; NULL: read when it is done */
  size_t bytes;
  int dst_device, src_device; /* -1: the host */
  point *point;
  standin_launch *launch;
  standin_task task;
} work;

struct CUstream_st {
  struct CUstream_st *next;
  work *first, **end;
  int device;
};

struct CUevent_st {
  point *point; /* NULL: never recorded */
  int device;
};

static struct CUstream_st *streams;

static void unuse(point *p) {
  if (p != NULL && --p->uses == 0) free(p);
}

static cudaError_t put(struct CUstream_st *s, work w) {
  work *copy = malloc(sizeof *copy);
  if (copy == NULL) return cudaErrorMemoryAllocation;
  *copy = w;
  *s->end = copy;
  s->end = &copy->next;
  standin.counts.works++;
  return cudaSuccess;
}

static void drop_first(struct CUstream_st *s) {
  work *w = s->first;
  s->first = w->next;
  if (s->first == NULL) s->end = &s->first;
  if (w->kind == RECORD) w->point->done = true;
  if (w->kind == TASK && w->task.run != NULL) w->task.run(w->task.arg, false);
  unuse(w->point);
  free(w->kept);
  free(w->launch);
  free(w);
  standin.counts.works--;
}

static bool is_there(const void *address, size_t bytes, int device) {
  if (device >= 0) return standin_is_live(address, bytes, device);
  const standin_block *b = standin_block_at(address); /* pinned? */
  return b == NULL || standin_is_live(address, bytes, -1);
}

/* Memory that is gone when the work is done loses the device. */
static void copy_now(const work *w) {
  if (is_there(w->dst, w->bytes, w->dst_device) &&
      (w->kept != NULL || is_there(w->src, w->bytes, w->src_device)))
    memcpy(w->dst, w->kept != NULL ? w->kept : w->src, w->bytes);
  else
    standin.lost = cudaErrorIllegalAddress;
}

static void task_now(work *w) {
  standin_task *t = &w->task;
  for (size_t i = 0; i < sizeof t->spans / sizeof t->spans[0]; i++)
    if (t->spans[i].bytes > 0 &&
        !standin_is_live(t->spans[i].address, t->spans[i].bytes, t->device))
      standin.lost = cudaErrorIllegalAddress;
  t->run(t->arg, standin.lost == cudaSuccess);
  t->run = NULL;
}

static bool is_blocked(const struct CUstream_st *s) {
  return s->first == NULL || (s->first->kind == WAIT && !s->first->point->done);
}

static void step(struct CUstream_st *s) {
  if (s->first->kind == COPY) copy_now(s->first);
  if (s->first->kind == RUN) standin_launch_run(s->first->launch, s->device);
  if (s->first->kind == TASK) task_now(s->first);
  drop_first(s);
}

/* A stream that may move, by the seed; NULL: none, this time. */
static struct CUstream_st *other(void) {
  for (struct CUstream_st *s = streams; s != NULL; s = s->next)
    if (!is_blocked(s) && standin_chance()) return s;
  return NULL;
}

/* Does works until |p| has happened, or with NULL until |s| is empty. */
static void run(struct CUstream_st *s, const point *p) {
  while (standin.lost == cudaSuccess &&
         (p != NULL ? !p->done : s->first != NULL)) {
    struct CUstream_st *next = other();
    if (next == NULL) { /* the one that |s| waits for */
      next = s;
      while (is_blocked(next)) next = next->first->point->stream;
    }
    step(next);
  }
}

static bool is_stream(const struct CUstream_st *stream) {
  struct CUstream_st *s = streams;
  while (s != NULL && s != stream) s = s->next;
  return s != NULL;
}

static cudaError_t put_copy(cudaStream_t s, work w) {
  if (!is_stream(s)) return cudaErrorInvalidResourceHandle;
  if (!is_there(w.dst, w.bytes, w.dst_device) ||
      !is_there(w.src, w.bytes, w.src_device))
    return cudaErrorInvalidValue;
  bool pageable_in = w.src_device < 0 && standin_block_at(w.src) == NULL;
  bool pageable_out = w.dst_device < 0 && standin_block_at(w.dst) == NULL;
  if (pageable_in && standin_chance()) {
    if ((w.kept = malloc(w.bytes)) == NULL) return cudaErrorMemoryAllocation;
    memcpy(w.kept, w.src, w.bytes);
  }
  cudaError_t e = put(s, w);
  if (e != cudaSuccess) free(w.kept);
  if (e == cudaSuccess && pageable_out && standin_chance()) run(s, NULL);
  return e;
}

cudaError_t standin_put_launch(cudaStream_t stream, standin_launch *launch) {
  if (!is_stream(stream) || stream->device != standin_device)
    return cudaErrorInvalidResourceHandle;
  return put(stream, (work){.kind = RUN, .launch = launch});
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream) {
  cudaError_t e = standin_begin();
  bool in = kind == cudaMemcpyHostToDevice,
       out = kind == cudaMemcpyDeviceToHost;
  if (e == cudaSuccess && !in && !out && kind != cudaMemcpyDeviceToDevice)
    e = cudaErrorInvalidMemcpyDirection;
  if (e == cudaSuccess && is_stream(stream)) {
    int d = stream->device;
    e = put_copy(stream, (work){.kind = COPY,
                                .dst = dst,
                                .src = src,
                                .bytes = bytes,
                                .dst_device = out ? -1 : d,
                                .src_device = in ? -1 : d});
  } else if (e == cudaSuccess) {
    e = cudaErrorInvalidResourceHandle;
  }
  return standin_end(e);
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src,
                                int src_device, size_t bytes,
                                cudaStream_t stream) {
  cudaError_t e = standin_begin();
  if (e == cudaSuccess)
    e = put_copy(stream, (work){.kind = COPY,
                                .dst = dst,
                                .src = src,
                                .bytes = bytes,
                                .dst_device = dst_device,
                                .src_device = src_device});
  return standin_end(e);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
  cudaError_t e = standin_begin();
  (void)flags;
  struct CUstream_st *s = e == cudaSuccess ? calloc(1, sizeof *s) : NULL;
  if (e == cudaSuccess && s == NULL) e = cudaErrorMemoryAllocation;
  if (e == cudaSuccess) {
    s->end = &s->first;
    s->device = standin_device;
    s->next = streams;
    streams = s;
    standin.counts.streams++;
    *out = s;
  }
  return standin_end(e);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  cudaError_t e = standin_begin();
  if (!is_stream(stream)) return standin_end(cudaErrorInvalidResourceHandle);
  standin.counts.destroyed_with_work += stream->first != NULL;
  run(stream, NULL);
  while (stream->first != NULL) drop_first(stream); /* of a lost device */
  struct CUstream_st **link = &streams;
  while (*link != stream) link = &(*link)->next;
  *link = stream->next;
  free(stream);
  standin.counts.streams--;
  return standin_end(e);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  cudaError_t e = standin_begin();
  if (e == cudaSuccess && !is_stream(stream))
    e = cudaErrorInvalidResourceHandle;
  if (e == cudaSuccess) run(stream, NULL);
  return standin_end(e);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned flags) {
  cudaError_t e = standin_begin();
  (void)flags;
  if (e == cudaSuccess && !is_stream(stream))
    e = cudaErrorInvalidResourceHandle;
  if (e == cudaSuccess && event->point != NULL) {
    e = put(stream, (work){.kind = WAIT, .point = event->point});
    event->point->uses += e == cudaSuccess;
  }
  return standin_end(e);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
  cudaError_t e = standin_begin();
  (void)flags;
  struct CUevent_st *event = e == cudaSuccess ? calloc(1, sizeof *event) : NULL;
  if (e == cudaSuccess && event == NULL) e = cudaErrorMemoryAllocation;
  if (e == cudaSuccess) {
    event->device = standin_device;
    standin.counts.events++;
    *out = event;
  }
  return standin_end(e);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  cudaError_t e = standin_begin();
  unuse(event->point);
  free(event);
  standin.counts.events--;
  return standin_end(e);
}

static cudaError_t record(cudaEvent_t event, cudaStream_t stream) {
  if (!is_stream(stream) || stream->device != event->device)
    return cudaErrorInvalidResourceHandle;
  point *p = malloc(sizeof *p);
  if (p == NULL) return cudaErrorMemoryAllocation;
  *p = (point){stream, 2, false}; /* the event's and the work's */
  cudaError_t e = put(stream, (work){.kind = RECORD, .point = p});
  if (e != cudaSuccess) {
    free(p);
    return e;
  }
  unuse(event->point);
  event->point = p;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  cudaError_t e = standin_begin();
  if (e == cudaSuccess) e = record(event, stream);
  return standin_end(e);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  cudaError_t e = standin_begin();
  if (e == cudaSuccess && event->point != NULL)
    run(event->point->stream, event->point);
  return standin_end(e);
}

cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes,
                            cudaStream_t stream) {
  cudaError_t e = standin_begin();
  if (e == cudaSuccess && !is_stream(stream))
    e = cudaErrorInvalidResourceHandle;
  if (e == cudaSuccess && !is_there(dst, bytes, stream->device))
    e = cudaErrorInvalidValue;
  void *kept = e == cudaSuccess ? malloc(bytes) : NULL;
  if (e == cudaSuccess && kept == NULL) e = cudaErrorMemoryAllocation;
  if (e == cudaSuccess) {
    memset(kept, value, bytes);
    e = put(stream, (work){.kind = COPY,
                           .dst = dst,
                           .kept = kept,
                           .bytes = bytes,
                           .dst_device = stream->device});
    if (e != cudaSuccess) free(kept);
  }
  return standin_end(e);
}

int standin_put(void *stream, const standin_task *task) {
  cudaError_t e = standin_begin_quietly();
  struct CUstream_st *s = stream;
  if (e == cudaSuccess && (!is_stream(s) || s->device != task->device))
    e = cudaErrorInvalidResourceHandle;
  if (e == cudaSuccess) e = put(s, (work){.kind = TASK, .task = *task});
  standin_end(e); /* what was put is done or dropped, lost or not */
  return (int)e;
}
