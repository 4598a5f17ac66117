/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/standin/work.h"

/* Captures and graphs.
 *
 * A stream that captures has a list beside its queue, and works go there. A
 * launch of a graph puts clones of its works into the queue, where they are
 * done like any other work: an address that is gone by then is found then.
 *
 * What CUDA does not allow during a capture breaks it: that call fails, every
 * later one that puts works fails, and the end has no graph. Only thread-local
 * captures are known. Where CUDA's documentation leaves something open, and
 * where it would let other streams join the capture, this refuses: copies of
 * pageable memory or between devices, and waits of other streams. */

typedef struct CUgraph_st {
  standin_works works;
  int device;
} graph_st;

typedef struct CUgraphExec_st {
  struct CUgraphExec_st *next;
  standin_works works;
  int device;
} exec_st;

static exec_st *execs;
static uint64_t last_id;

cudaError_t standin_break(struct CUstream_st *stream, cudaError_t e) {
  if (stream->capture != NULL) stream->capture->broken = true;
  return e;
}

cudaError_t standin_break_id(uint64_t id, cudaError_t e) {
  for (struct CUstream_st *s = standin_streams; s != NULL; s = s->next)
    if (s->capture != NULL && s->capture->id == id) return standin_break(s, e);
  return e;
}

cudaError_t standin_unsafe(void) {
  cudaError_t e = cudaSuccess;
  for (struct CUstream_st *s = standin_streams; s != NULL; s = s->next)
    if (s->capture != NULL && pthread_equal(s->capture->thread, pthread_self()))
      e = standin_break(s, cudaErrorStreamCaptureUnsupported);
  return e;
}

static void drop_all(standin_works *works) {
  while (works->first != NULL) standin_works_drop_first(works);
}

void standin_capture_drop(struct CUstream_st *stream) {
  if (stream->capture == NULL) return;
  drop_all(&stream->capture->works);
  free(stream->capture);
  stream->capture = NULL;
}

/* NULL: |bytes| is NULL, or there is no memory. */
static void *copy_of(const void *data, size_t bytes) {
  void *copy = data != NULL ? malloc(bytes) : NULL;
  return copy != NULL ? memcpy(copy, data, bytes) : NULL;
}

/* NULL: no memory. */
static standin_work *clone_work(const standin_work *w) {
  standin_work *c = copy_of(w, sizeof *w);
  if (c == NULL) return NULL;
  c->kept = copy_of(w->kept, w->bytes);
  c->launch = w->launch != NULL
                  ? copy_of(w->launch, standin_launch_bytes(w->launch))
                  : NULL;
  if (w->kind == TASK) c->task.arg = w->task.clone(w->task.arg);
  if ((c->kept == NULL) == (w->kept == NULL) &&
      (c->launch == NULL) == (w->launch == NULL) &&
      (w->kind != TASK || c->task.arg != NULL))
    return c;
  if (w->kind == TASK && c->task.arg != NULL) w->task.run(c->task.arg, false);
  free(c->kept);
  free(c->launch);
  free(c);
  return NULL;
}

/* The bytes of the host as they are now. */
static cudaError_t keep_bytes(standin_work *w) {
  if (w->kind != COPY || w->src_device >= 0 || w->kept != NULL)
    return cudaSuccess;
  w->kept = copy_of(w->src, w->bytes);
  return w->kept != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* Appends clones of all works to |to|, or none. */
static cudaError_t clone_all(const standin_works *from, exec_st *exec,
                             standin_works *to) {
  standin_works clones;
  standin_works_init(&clones);
  for (const standin_work *w = from->first; w != NULL; w = w->next) {
    standin_work *c = clone_work(w);
    if (c == NULL) {
      drop_all(&clones);
      return cudaErrorMemoryAllocation;
    }
    c->exec = exec;
    standin_works_append(&clones, c);
  }
  if (clones.first == NULL) return cudaSuccess;
  *to->end = clones.first;
  to->end = clones.end;
  return cudaSuccess;
}

static cudaError_t begin(struct CUstream_st *s,
                         enum cudaStreamCaptureMode mode) {
  if (!standin_is_stream(s) || s->device != standin_device)
    return cudaErrorInvalidResourceHandle;
  if (mode != cudaStreamCaptureModeThreadLocal) return cudaErrorInvalidValue;
  if (s->capture != NULL) return cudaErrorIllegalState;
  standin_capture *c = malloc(sizeof *c);
  if (c == NULL) return cudaErrorMemoryAllocation;
  *c = (standin_capture){.id = ++last_id, .thread = pthread_self()};
  standin_works_init(&c->works);
  s->capture = c;
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                   enum cudaStreamCaptureMode mode) {
  cudaError_t e = standin_begin();
  if (e == cudaSuccess) e = begin(stream, mode);
  return standin_end(e);
}

/* The works of |from|, which has none after. */
static void move(standin_works *from, standin_works *to) {
  standin_works_init(to);
  if (from->first == NULL) return;
  *to = *from;
  standin_works_init(from);
}

/* Ends the capture even where |e| says that the call fails. */
static cudaError_t end(struct CUstream_st *s, cudaGraph_t *out, cudaError_t e) {
  *out = NULL;
  if (!standin_is_stream(s)) return cudaErrorInvalidResourceHandle;
  if (s->capture == NULL) return e != cudaSuccess ? e : cudaErrorIllegalState;
  if (!pthread_equal(s->capture->thread, pthread_self()))
    return cudaErrorStreamCaptureWrongThread;
  if (e == cudaSuccess && s->capture->broken)
    e = cudaErrorStreamCaptureInvalidated;
  graph_st *g = e == cudaSuccess ? malloc(sizeof *g) : NULL;
  if (e == cudaSuccess && g == NULL) e = cudaErrorMemoryAllocation;
  if (e == cudaSuccess) {
    g->device = s->device;
    move(&s->capture->works, &g->works);
    standin.counts.graphs++;
    *out = g;
  }
  standin_capture_drop(s);
  return e;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out) {
  cudaError_t e = standin_begin();
  return standin_end(end(stream, out, e));
}

static cudaError_t instantiate(cudaGraphExec_t *out, cudaGraph_t graph,
                               unsigned long long flags) {
  if (graph == NULL || flags != 0) return cudaErrorInvalidValue;
  exec_st *x = malloc(sizeof *x);
  if (x == NULL) return cudaErrorMemoryAllocation;
  *x = (exec_st){.next = execs, .device = graph->device};
  standin_works_init(&x->works);
  cudaError_t e = clone_all(&graph->works, NULL, &x->works);
  for (standin_work *w = x->works.first;
       w != NULL && e == cudaSuccess && standin_has(STANDIN_BUG_stale_bytes);
       w = w->next)
    e = keep_bytes(w);
  if (e != cudaSuccess) {
    drop_all(&x->works);
    free(x);
    return e;
  }
  execs = x;
  standin.counts.graphs++;
  *out = x;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph,
                                 unsigned long long flags) {
  cudaError_t e = standin_begin();
  if (e == cudaSuccess) e = instantiate(out, graph, flags);
  return standin_end(e);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  cudaError_t e = standin_begin();
  if (graph == NULL) return standin_end(cudaErrorInvalidValue);
  drop_all(&graph->works);
  free(graph);
  standin.counts.graphs--;
  return standin_end(e);
}

static exec_st **link_of(const exec_st *exec) {
  exec_st **link = &execs;
  while (*link != NULL && *link != exec) link = &(*link)->next;
  return link;
}

/* The first that was made for the same GPU. */
static exec_st *first_of(int device) {
  exec_st *first = NULL;
  for (exec_st *x = execs; x != NULL; x = x->next)
    if (x->device == device) first = x;
  return first;
}

/* Whether a replay is under way. */
static bool is_queued(const exec_st *exec) {
  for (struct CUstream_st *s = standin_streams; s != NULL; s = s->next)
    for (const standin_work *w = s->works.first; w != NULL; w = w->next)
      if (w->exec == exec) return true;
  return false;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  cudaError_t e = standin_begin();
  exec_st **link = link_of(exec);
  if (*link == NULL) return standin_end(cudaErrorInvalidValue);
  standin.counts.destroyed_with_work += is_queued(exec);
  *link = exec->next;
  drop_all(&exec->works);
  free(exec);
  standin.counts.graphs--;
  return standin_end(e);
}

static cudaError_t launch(exec_st *exec, struct CUstream_st *s) {
  if (*link_of(exec) == NULL) return cudaErrorInvalidValue;
  if (!standin_is_stream(s) || s->device != exec->device)
    return cudaErrorInvalidResourceHandle;
  if (s->capture != NULL)
    return standin_break(s, cudaErrorStreamCaptureUnsupported);
  if (standin_has(STANDIN_BUG_stale_address)) exec = first_of(exec->device);
  cudaError_t e = clone_all(&exec->works, exec, &s->works);
  standin.counts.graph_launches += e == cudaSuccess;
  return e;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  cudaError_t e = standin_begin();
  if (e == cudaSuccess) e = launch(exec, stream);
  return standin_end(e);
}
