/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/gpu/gpu_trace.h"

#include <assert.h>

#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/run/run_slow.h"

/* Marks are timers of the device. A trace begins with two, between which lies
 * nothing: what they are apart is the price of a mark, which each instruction
 * holds once. The host's clock sets the end of the task, and all times count
 * back from there: they are some microseconds late, and their lengths are the
 * GPU's. */

/* One for each instruction, one more where the run waits between them. */
static uint32_t most_marks(const weir_gpu_task *t) {
  const weir_ptask *task = &t->task->frame->program->tasks[t->task->index];
  return 2 * (task->last - task->first) + 2;
}

static weir_status make(weir_gpu_task *t, weir_error *err) {
  const weir_allocator *a = t->task->frame->program->env->alloc;
  weir_device *d = t->task->frame->gpu->gpu->gpu.device;
  uint32_t most = most_marks(t);
  if (t->trace == NULL) t->trace = weir_alloc_array(a, 1, sizeof *t->trace);
  weir_gpu_trace *trace = t->trace;
  if (trace == NULL) return weir_fail_memory(err, sizeof *trace);
  if (trace->marks == NULL) {
    trace->mark_ns = INT64_MAX;
    trace->marks = weir_alloc_array(a, most, sizeof(weir_event *));
  }
  if (trace->instrs == NULL)
    trace->instrs = weir_alloc_array(a, most, sizeof *trace->instrs);
  if (trace->marks == NULL || trace->instrs == NULL)
    return weir_fail_memory(err, most * sizeof(weir_event *));
  for (; trace->made < most; trace->made++)
    WEIR_TRY(d->vt->timer_create(d, &trace->marks[trace->made], err));
  return WEIR_OK;
}

weir_status weir_gpu_trace_begin(weir_gpu_task *t, weir_error *err) {
  WEIR_TRY(make(t, err));
  t->trace->used = 0;
  WEIR_TRY(weir_gpu_trace_mark(t, WEIR_NO_INDEX, err));
  return weir_gpu_trace_mark(t, WEIR_NO_INDEX, err);
}

weir_status weir_gpu_trace_mark(weir_gpu_task *t, uint32_t instr,
                                weir_error *err) {
  weir_gpu_frame *g = t->task->frame->gpu;
  weir_device *d = g->gpu->gpu.device;
  weir_gpu_trace *trace = t->trace;
  assert(trace->used < trace->made);
  WEIR_TRY(d->vt->record(d, g->queue, trace->marks[trace->used], err));
  trace->instrs[trace->used++] = instr;
  return WEIR_OK;
}

static weir_status between(weir_gpu_task *t, uint32_t from, uint32_t to,
                           int64_t *out_ns, weir_error *err) {
  weir_device *d = t->task->frame->gpu->gpu->gpu.device;
  return d->vt->elapsed(d, t->trace->marks[from], t->trace->marks[to], out_ns,
                        err);
}

static weir_status tell(weir_gpu_task *t, uint32_t used, weir_error *err) {
  weir_frame *f = t->task->frame;
  weir_gpu_trace *trace = t->trace;
  const weir_clock *clock = f->program->env->clock;
  int64_t now = clock->now_ns(clock->self), price, took, after;
  WEIR_TRY(between(t, 0, 1, &price, err));
  if (price < trace->mark_ns) trace->mark_ns = price;
  for (uint32_t i = 2; i < used; i++) {
    if (trace->instrs[i] == WEIR_NO_INDEX) continue;
    WEIR_TRY(between(t, i - 1, i, &took, err));
    WEIR_TRY(between(t, i, used - 1, &after, err));
    took = took > trace->mark_ns ? took - trace->mark_ns : 0;
    weir_frame_trace_device(f, trace->instrs[i], now - after - took,
                            now - after);
  }
  return WEIR_OK;
}

weir_status weir_gpu_trace_tell(weir_gpu_task *t, weir_error *err) {
  if (t->trace == NULL || t->trace->used < 2) return WEIR_OK;
  uint32_t used = t->trace->used;
  t->trace->used = 0;
  return tell(t, used, err);
}

void weir_gpu_trace_release(weir_gpu_task *t) {
  if (t->trace == NULL) return;
  const weir_allocator *a = t->task->frame->program->env->alloc;
  weir_device *d = t->task->frame->gpu->gpu->gpu.device;
  for (uint32_t i = 0; i < t->trace->made; i++)
    d->vt->event_release(d, t->trace->marks[i]);
  weir_free(a, t->trace->marks);
  weir_free(a, t->trace->instrs);
  weir_free(a, t->trace);
  t->trace = NULL;
}
