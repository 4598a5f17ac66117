/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/standin/work.h"

/* Streams, events and copies.
 *
 * A call puts a work at the end of its stream; run() does works, and only when
 * somebody waits: those that the wait needs, in an order that their streams and
 * events leave open, and by the seed some of other streams. A recorded event is
 * a point, which outlives its event for as long as a work waits for it. Waits
 * are for points that were recorded before, so no circle can come about. A
 * stream that captures keeps its works elsewhere (graph.c).
 *
 * A stream has a clock that its works alone move, so times are the same in
 * every run, whatever the machine: a copy takes 1 us and a bit for each 16
 * bytes, a launch 2 us and a bit for each thread (standin.h has the figures). A
 * wait moves it to the event's. */

struct CUevent_st {
  standin_point *point; /* NULL: never recorded */
  uint64_t capture;     /* that it was last recorded in; 0: in none */
  int device;
  bool keeps_time;
};

struct CUstream_st *standin_streams;

static void unuse(standin_point *p) {
  if (p != NULL && --p->uses == 0) free(p);
}

bool standin_is_stream(const struct CUstream_st *stream) {
  struct CUstream_st *s = standin_streams;
  while (s != NULL && s != stream) s = s->next;
  return s != NULL;
}

void standin_works_init(standin_works *works) {
  *works = (standin_works){NULL, &works->first};
}

void standin_works_append(standin_works *works, standin_work *w) {
  w->next = NULL;
  *works->end = w;
  works->end = &w->next;
  standin.counts.works++;
}

void standin_works_drop_first(standin_works *works) {
  standin_work *w = works->first;
  works->first = w->next;
  if (works->first == NULL) works->end = &works->first;
  if (w->kind == RECORD) w->point->done = true;
  if (w->kind == TASK && w->task.run != NULL) w->task.run(w->task.arg, false);
  unuse(w->point);
  free(w->kept);
  free(w->launch);
  free(w);
  standin.counts.works--;
}

cudaError_t standin_admit(const struct CUstream_st *stream, int device) {
  if (!standin_is_stream(stream) || stream->device != device)
    return cudaErrorInvalidResourceHandle;
  return stream->capture != NULL && stream->capture->broken
             ? cudaErrorStreamCaptureInvalidated
             : cudaSuccess;
}

/* Before the last work, where there is one. */
static void put_too_early(standin_works *works, standin_work *w) {
  standin_work **link = &works->first;
  if (*link == NULL) {
    standin_works_append(works, w);
    return;
  }
  while ((*link)->next != NULL) link = &(*link)->next;
  w->next = *link;
  *link = w;
  standin.counts.works++;
}

static bool comes_too_early(const standin_work *w) {
  return (w->kind == RECORD && standin_has(STANDIN_BUG_early_mark)) ||
         (w->kind == RUN && standin_has(STANDIN_BUG_early_launch));
}

cudaError_t standin_put_work(struct CUstream_st *stream, standin_work w) {
  standin_works *works =
      stream->capture != NULL ? &stream->capture->works : &stream->works;
  standin_work *copy = malloc(sizeof *copy);
  if (copy == NULL) return cudaErrorMemoryAllocation;
  *copy = w;
  if (comes_too_early(copy))
    put_too_early(works, copy);
  else
    standin_works_append(works, copy);
  return cudaSuccess;
}

static bool is_there(const void *address, size_t bytes, int device) {
  if (device >= 0) return standin_is_live(address, bytes, device);
  const standin_block *b = standin_block_at(address); /* pinned? */
  return b == NULL || standin_is_live(address, bytes, -1);
}

static void count_copy(const standin_work *w) {
  standin_counts *c = &standin.counts;
  if (w->src == NULL) return; /* zeros */
  if (w->dst_device < 0 || w->src_device < 0) {
    c->host_bytes += w->bytes;
  } else if (w->dst_device == w->src_device) {
    c->within_bytes += w->bytes;
  } else {
    c->peer_bytes += w->bytes;
    c->peer_copies++;
    c->far_copies += (standin.ways[w->dst_device] >> w->src_device & 1) == 0;
  }
}

/* Memory that is gone when the work is done loses the device. */
static void copy_now(const standin_work *w) {
  count_copy(w);
  if (is_there(w->dst, w->bytes, w->dst_device) &&
      (w->kept != NULL || is_there(w->src, w->bytes, w->src_device)))
    memcpy(w->dst, w->kept != NULL ? w->kept : w->src, w->bytes);
  else
    standin.lost = cudaErrorIllegalAddress;
}

static void task_now(standin_work *w) {
  standin_task *t = &w->task;
  for (size_t i = 0; i < sizeof t->spans / sizeof t->spans[0]; i++)
    if (t->spans[i].bytes > 0 &&
        !standin_is_live(t->spans[i].address, t->spans[i].bytes, t->device))
      standin.lost = cudaErrorIllegalAddress;
  t->run(t->arg, standin.lost == cudaSuccess);
  t->run = NULL;
}

static bool is_blocked(const struct CUstream_st *s) {
  return s->works.first == NULL ||
         (s->works.first->kind == WAIT && !s->works.first->point->done);
}

static int64_t time_of(const standin_work *w) {
  if (w->kind == COPY) {
    bool far = w->src_device < 0 || w->dst_device < 0;
    return STANDIN_COPY_NS +
           (int64_t)w->bytes /
               (far ? STANDIN_BYTES_PER_NS : 4 * STANDIN_BYTES_PER_NS);
  }
  if (w->kind == RUN) {
    const unsigned *b = w->launch->blocks;
    return STANDIN_LAUNCH_NS + (int64_t)b[0] * b[1] * b[2] * w->launch->threads;
  }
  if (w->kind == TASK)
    return w->task.cost_ns > 0 ? (int64_t)w->task.cost_ns : STANDIN_TASK_NS;
  return w->kind == RECORD ? STANDIN_RECORD_NS : 0;
}

static void step(struct CUstream_st *s) {
  standin_work *w = s->works.first;
  s->clock_ns += time_of(w);
  if (w->kind == RECORD) w->point->at_ns = s->clock_ns;
  if (w->kind == WAIT && w->point->at_ns > s->clock_ns)
    s->clock_ns = w->point->at_ns;
  if (w->kind == COPY) copy_now(w);
  if (w->kind == RUN) standin_launch_run(w->launch);
  if (w->kind == TASK) task_now(w);
  standin_works_drop_first(&s->works);
}

/* A stream that may move, by the seed; NULL: none, this time. */
static struct CUstream_st *other(void) {
  for (struct CUstream_st *s = standin_streams; s != NULL; s = s->next)
    if (!is_blocked(s) && standin_chance()) return s;
  return NULL;
}

/* Does works until |p| has happened, or with NULL until |s| is empty. */
static void run(struct CUstream_st *s, const standin_point *p) {
  while (standin.lost == cudaSuccess &&
         (p != NULL ? !p->done : s->works.first != NULL)) {
    struct CUstream_st *next = other();
    if (next == NULL) { /* the one that |s| waits for */
      next = s;
      while (is_blocked(next)) next = next->works.first->point->stream;
    }
    step(next);
  }
}

static cudaError_t put_copy(cudaStream_t s, standin_work w) {
  if (!standin_is_stream(s)) return cudaErrorInvalidResourceHandle;
  cudaError_t e = standin_admit(s, s->device);
  if (e != cudaSuccess) return e;
  if (!is_there(w.dst, w.bytes, w.dst_device) ||
      !is_there(w.src, w.bytes, w.src_device))
    return cudaErrorInvalidValue;
  bool pageable_in = w.src_device < 0 && standin_block_at(w.src) == NULL;
  bool pageable_out = w.dst_device < 0 && standin_block_at(w.dst) == NULL;
  if (s->capture != NULL && (pageable_in || pageable_out))
    return standin_break(s, cudaErrorStreamCaptureUnsupported);
  if (pageable_in && standin_chance()) {
    if ((w.kept = malloc(w.bytes)) == NULL) return cudaErrorMemoryAllocation;
    memcpy(w.kept, w.src, w.bytes);
  }
  e = standin_put_work(s, w);
  if (e != cudaSuccess) free(w.kept);
  if (e == cudaSuccess && pageable_out && standin_chance()) run(s, NULL);
  return e;
}

cudaError_t standin_put_launch(cudaStream_t stream, standin_launch *launch) {
  cudaError_t e = standin_admit(stream, standin_device);
  if (e != cudaSuccess) return e;
  return standin_put_work(stream,
                          (standin_work){.kind = RUN, .launch = launch});
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream) {
  cudaError_t e = standin_begin();
  if (standin_has(STANDIN_BUG_short_copy) && bytes > 4) bytes -= 4;
  bool in = kind == cudaMemcpyHostToDevice,
       out = kind == cudaMemcpyDeviceToHost;
  if (e == cudaSuccess && !in && !out && kind != cudaMemcpyDeviceToDevice)
    e = cudaErrorInvalidMemcpyDirection;
  if (e == cudaSuccess && standin_is_stream(stream)) {
    int d = stream->device;
    e = put_copy(stream, (standin_work){.kind = COPY,
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
  if (e == cudaSuccess && standin_is_stream(stream) && stream->capture != NULL)
    e = standin_break(stream, cudaErrorStreamCaptureUnsupported);
  if (e == cudaSuccess)
    e = put_copy(stream, (standin_work){.kind = COPY,
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
    standin_works_init(&s->works);
    s->device = standin_device;
    s->next = standin_streams;
    standin_streams = s;
    standin.counts.streams++;
    *out = s;
  }
  return standin_end(e);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  cudaError_t e = standin_begin();
  if (!standin_is_stream(stream))
    return standin_end(cudaErrorInvalidResourceHandle);
  standin.counts.destroyed_with_work +=
      stream->works.first != NULL || stream->capture != NULL;
  standin_capture_drop(stream);
  run(stream, NULL);
  while (stream->works.first != NULL) /* of a lost device */
    standin_works_drop_first(&stream->works);
  struct CUstream_st **link = &standin_streams;
  while (*link != stream) link = &(*link)->next;
  *link = stream->next;
  free(stream);
  standin.counts.streams--;
  return standin_end(e);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  cudaError_t e = standin_begin();
  if (e == cudaSuccess && !standin_is_stream(stream))
    e = cudaErrorInvalidResourceHandle;
  if (e == cudaSuccess) e = standin_unsafe();
  if (e == cudaSuccess && stream->capture != NULL)
    e = standin_break(stream, cudaErrorStreamCaptureUnsupported);
  if (e == cudaSuccess && !standin_has(STANDIN_BUG_busy_queue))
    run(stream, NULL);
  return standin_end(e);
}

/* Whether a copy from device to device is next in the stream of |p|, which has
 * not happened. */
static bool is_behind_copy(const standin_point *p) {
  const standin_work *w = p->done ? NULL : p->stream->works.first;
  return w != NULL && w->kind == COPY && w->src != NULL && w->dst_device >= 0 &&
         w->src_device >= 0;
}

/* A stream that captures waits for events of the same capture alone, which its
 * order does already. */
static cudaError_t put_wait(cudaStream_t s, cudaEvent_t event) {
  if (!standin_is_stream(s)) return cudaErrorInvalidResourceHandle;
  cudaError_t e = standin_admit(s, s->device);
  if (e != cudaSuccess) return e;
  if (s->capture != NULL && s->capture->id == event->capture)
    return cudaSuccess;
  if (s->capture != NULL)
    return standin_break(s, cudaErrorStreamCaptureIsolation);
  if (event->capture != 0)
    return standin_break_id(event->capture, cudaErrorCapturedEvent);
  if (event->point == NULL) return cudaSuccess;
  e = standin_put_work(s, (standin_work){.kind = WAIT, .point = event->point});
  event->point->uses += e == cudaSuccess;
  return e;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned flags) {
  cudaError_t e = standin_begin();
  (void)flags;
  if (e == cudaSuccess && !standin_has(STANDIN_BUG_no_wait))
    e = put_wait(stream, event);
  return standin_end(e);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
  cudaError_t e = standin_begin();
  struct CUevent_st *event = e == cudaSuccess ? calloc(1, sizeof *event) : NULL;
  if (e == cudaSuccess && event == NULL) e = cudaErrorMemoryAllocation;
  if (e == cudaSuccess) {
    event->device = standin_device;
    event->keeps_time = (flags & cudaEventDisableTiming) == 0;
    standin.counts.events++;
    *out = event;
  }
  return standin_end(e);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  cudaError_t e = standin_begin();
  if (standin_has(STANDIN_BUG_leak)) return standin_end(e);
  unuse(event->point);
  free(event);
  standin.counts.events--;
  return standin_end(e);
}

static cudaError_t record(cudaEvent_t event, cudaStream_t stream) {
  cudaError_t e = standin_admit(stream, event->device);
  if (e != cudaSuccess) return e;
  event->capture = 0;
  if (stream->capture != NULL) {
    event->capture = stream->capture->id;
    return cudaSuccess;
  }
  standin_point *p = malloc(sizeof *p);
  if (p == NULL) return cudaErrorMemoryAllocation;
  *p = (standin_point){.stream = stream,
                       .uses = 2}; /* the event's and the work's */
  e = standin_put_work(stream, (standin_work){.kind = RECORD, .point = p});
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

/* It makes nothing happen, and is not counted: a caller asks as often as it
 * has time for. */
cudaError_t cudaEventQuery(cudaEvent_t event) {
  cudaError_t e = standin_begin_quietly();
  if (e == cudaSuccess && event->point != NULL && !event->point->done)
    e = cudaErrorNotReady;
  return standin_end(e);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  cudaError_t e = standin_begin();
  if (e == cudaSuccess) e = standin_unsafe();
  if (e == cudaSuccess && event->capture != 0)
    e = standin_break_id(event->capture, cudaErrorCapturedEvent);
  if (e == cudaSuccess && event->point != NULL &&
      standin_has(STANDIN_BUG_early_end) && is_behind_copy(event->point))
    return standin_end(e);
  if (e == cudaSuccess && event->point != NULL &&
      !standin_has(STANDIN_BUG_no_sync))
    run(event->point->stream, event->point);
  return standin_end(e);
}

static bool keeps_time(cudaEvent_t event) {
  return event != NULL && event->keeps_time && event->point != NULL;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
  cudaError_t e = standin_begin();
  if (e == cudaSuccess && ms == NULL) e = cudaErrorInvalidValue;
  if (e == cudaSuccess &&
      (!keeps_time(from) || !keeps_time(to) || from->device != to->device))
    e = cudaErrorInvalidResourceHandle;
  if (e == cudaSuccess && (!from->point->done || !to->point->done))
    e = cudaErrorNotReady;
  if (e == cudaSuccess)
    *ms = (float)((double)(to->point->at_ns - from->point->at_ns) / 1e6);
  return standin_end(e);
}

cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes,
                            cudaStream_t stream) {
  cudaError_t e = standin_begin();
  if (e == cudaSuccess) e = standin_admit(stream, standin_device);
  if (e == cudaSuccess && !is_there(dst, bytes, stream->device))
    e = cudaErrorInvalidValue;
  if (standin_has(STANDIN_BUG_no_zeros)) return standin_end(e);
  void *kept = e == cudaSuccess ? malloc(bytes) : NULL;
  if (e == cudaSuccess && kept == NULL) e = cudaErrorMemoryAllocation;
  if (e == cudaSuccess) {
    memset(kept, value, bytes);
    e = standin_put_work(stream, (standin_work){.kind = COPY,
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
  if (e == cudaSuccess) e = standin_admit(s, task->device);
  if (e == cudaSuccess && s->capture != NULL && task->clone == NULL)
    e = standin_break(s, cudaErrorStreamCaptureUnsupported);
  if (e == cudaSuccess)
    e = standin_put_work(s, (standin_work){.kind = TASK, .task = *task});
  standin_end(e); /* what was put is done or dropped, lost or not */
  return (int)e;
}
