/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/gpu/gpu_peer.h"

#include "runtime/exec/program/instr_comm.h"
#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/run/run_slow.h"
#include "runtime/exec/run/run_tasks.h"

/* A copy begins when both ends have been started: the value is made, for a send
 * starts when its maker's work has ended, and the memory it goes to is free,
 * for a receive starts when the last work with it has ended. So the copy itself
 * waits for no event, and may go on beside all work of both queues.
 *
 * A task that reads a received value is told when the copy is queued, and lets
 * its queue wait for the copy's event before its own work; later tasks of the
 * queue follow it. That is done outside of graphs, which are the same for every
 * step. The sender's memory is in use until the copy has ended: the GPU's
 * thread says so, which is an end of the send.
 *
 * A send has two ends, since the channel calls the two sides in any order and
 * must not be told of a task that is gone: the channel's call, and the copy's
 * end.
 *
 * Whoever reads a value whose copy fails in the end has run with other bytes by
 * then. The copy's end is awaited before that of any reader, so the failure is
 * known first, and the readers' ends pass it on (gpu_frame.c). */

static bool is_arrival(const weir_program *p, uint32_t task) {
  return p->tasks[task].async &&
         weir_instr_comm_arrives(&p->instrs[p->tasks[task].first].spec);
}

/* The queue's tasks that follow a receive: each gets a list of those before it,
 * in one array. Two rounds: counts, then the lists. */
static weir_status list_arrivals(weir_frame *f, weir_error *err) {
  const weir_program *p = f->program;
  weir_gpu_frame *g = f->gpu;
  size_t total = 0;
  for (uint32_t t = 0; t < p->task_count; t++)
    for (uint32_t i = 0; is_arrival(p, t) && i < p->tasks[t].next_count; i++) {
      g->tasks[p->tasks[t].next[i]].arrival_count++;
      total++;
    }
  g->arrivals = weir_alloc_array(p->env->alloc, total + 1, sizeof *g->arrivals);
  if (g->arrivals == NULL) return weir_fail_memory(err, total);
  uint32_t *at = g->arrivals;
  for (uint32_t t = 0; t < p->task_count; t++) {
    g->tasks[t].arrivals = at;
    at += g->tasks[t].arrival_count;
    g->tasks[t].arrival_count = 0;
  }
  for (uint32_t t = 0; t < p->task_count; t++)
    for (uint32_t i = 0; is_arrival(p, t) && i < p->tasks[t].next_count; i++) {
      weir_gpu_task *next = &g->tasks[p->tasks[t].next[i]];
      next->arrivals[next->arrival_count++] = t;
    }
  return WEIR_OK;
}

weir_status weir_gpu_peers_create(weir_frame *f, weir_error *err) {
  const weir_program *p = f->program;
  weir_gpu_frame *g = f->gpu;
  weir_device *d = g->gpu->gpu.device;
  bool any = false;
  for (uint32_t t = 0; t < p->task_count && !any; t++) any = is_arrival(p, t);
  if (!any) return WEIR_OK;
  WEIR_TRY(d->vt->queue_create(d, &g->copies, err));
  WEIR_TRY(d->vt->event_create(d, &g->settled, err));
  return list_arrivals(f, err);
}

void weir_gpu_peers_release(weir_frame *f) {
  weir_gpu_frame *g = f->gpu;
  weir_device *d = g->gpu->gpu.device;
  d->vt->queue_release(d, g->copies);
  d->vt->event_release(d, g->settled);
  weir_free(f->program->env->alloc, g->arrivals);
}

/* ---- The sender */

static weir_gpu_task *of(const weir_frame_task *t) {
  return &t->frame->gpu->tasks[t->index];
}

const weir_gpu_offer *weir_gpu_peer_offer(weir_frame_task *t, void *value,
                                          void (*done)(weir_frame_task *task)) {
  weir_gpu_task *gt = of(t);
  gt->offer =
      (weir_gpu_offer){.gpu = t->frame->gpu->gpu, .value = value, .from = t};
  gt->sent = done;
  atomic_store(&gt->halves, 2);
  return &gt->offer;
}

void weir_gpu_peer_half(weir_frame_task *t) {
  weir_gpu_task *gt = of(t);
  if (atomic_fetch_sub(&gt->halves, 1) == 1) gt->sent(t);
}

/* ---- The receiver */

weir_gpu_offer *weir_gpu_peer_offered(weir_frame_task *t) {
  return &of(t)->offer;
}

/* One thread's at a time, as |copies| is. A copy whose event could not be
 * recorded has ended, or the GPU is lost, when this returns. */
static weir_status queue_copy(weir_gpu_frame *g, const weir_gpu_task *gt,
                              void *value, size_t bytes, weir_error *err) {
  const weir_gpu_offer *o = &gt->offer;
  weir_device *d = g->gpu->gpu.device, *from = o->gpu->gpu.device;
  const weir_device_buffer to = {value, NULL, bytes};
  const weir_device_buffer at = {o->value, NULL, bytes};
  const weir_device_place dst = {&to, 0}, src = {&at, 0};
  pthread_mutex_lock(&g->copy_lock);
  weir_status s =
      d == from ? d->vt->copy(d, g->copies, dst, src, bytes, err)
                : d->vt->copy_peer(d, g->copies, dst, from, src, bytes, err);
  if (s == WEIR_OK) s = d->vt->record(d, g->copies, gt->end.event, err);
  if (s != WEIR_OK) weir_gpu_settle(g->gpu, g->copies, g->settled);
  pthread_mutex_unlock(&g->copy_lock);
  return s;
}

static void fail(weir_frame_task *t, weir_status status,
                 const weir_error *why) {
  weir_error err = *why;
  weir_frame_fail(t->frame, t->frame->program->tasks[t->index].first, status,
                  &err);
}

/* On the GPU's thread. */
static void copied(void *self, weir_status status, const weir_error *err) {
  weir_frame_task *t = self;
  weir_frame *f = t->frame;
  const weir_clock *clock = f->program->env->clock;
  if (status != WEIR_OK)
    fail(t, status, err);
  else if (f->options.trace != NULL)
    weir_frame_trace(f, f->program->tasks[t->index].first, t->start_ns,
                     clock->now_ns(clock->self), 0);
  weir_gpu_peer_half(of(t)->offer.from);
  weir_gpu_task_ended(t);
}

void weir_gpu_peer_copy(weir_frame_task *t, void *value, size_t bytes) {
  weir_frame *f = t->frame;
  weir_gpu_task *gt = of(t);
  const weir_clock *clock = f->program->env->clock;
  weir_error err = WEIR_ERROR_INIT;
  if (f->options.trace != NULL) t->start_ns = clock->now_ns(clock->self);
  weir_status s = queue_copy(f->gpu, gt, value, bytes, &err);
  if (s == WEIR_OK) {
    gt->end.done = copied;
    gt->end.self = t;
    weir_gpu_task_queued(t);
    return;
  }
  fail(t, s, &err);
  weir_gpu_peer_half(gt->offer.from);
  weir_frame_task_end(t);
}

weir_status weir_gpu_peers_wait(const weir_frame_task *t, weir_error *err) {
  weir_gpu_frame *g = t->frame->gpu;
  const weir_gpu_task *gt = of(t);
  weir_device *d = g->gpu->gpu.device;
  for (uint32_t k = 0; k < gt->arrival_count; k++)
    WEIR_TRY(d->vt->queue_wait(d, g->queue, g->tasks[gt->arrivals[k]].end.event,
                               err));
  return WEIR_OK;
}
