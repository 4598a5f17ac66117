/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/gpu/gpu_frame.h"

#include <assert.h>
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/exec/gpu/gpu_graph.h"
#include "runtime/exec/gpu/gpu_look.h"
#include "runtime/exec/gpu/gpu_memory.h"
#include "runtime/exec/gpu/gpu_peer.h"
#include "runtime/exec/gpu/gpu_trace.h"
#include "runtime/exec/gpu/gpu_turn.h"
#include "runtime/exec/parallel.h"
#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/run/run.h"
#include "runtime/exec/run/run_slow.h"
#include "runtime/exec/run/run_tasks.h"

/* Instructions are queued in order, one at a time: there is no fast loop, since
 * a launch takes far longer than a look at the frame. Where NaN is looked for,
 * each is waited for.
 *
 * A body that refuses data marks the block and goes on, so what follows has
 * been queued, or has run, before anybody knows. When a task has ended its
 * fault becomes the failure of the instruction, and poison spreads over the
 * task's other instructions, in the order in which tasks end, which is that of
 * the queue. Of two faults in a run the first alone is kept: instructions after
 * it that check data count as failed with it. */

/* Outputs of more bytes in all are copied by the pool and not by the GPU's
 * thread, which others wait for. */
enum { kLargeOutputs = 256 << 10 };

enum { kMostCalls = 20000 }; /* of a graph: some 20 MB of the driver's */

/* ---- Making */

static size_t output_bytes(const weir_program *p, const weir_ptask *task) {
  size_t bytes = 0;
  for (uint32_t i = task->first; i < task->last; i++) {
    const weir_instr_spec *s = &p->instrs[i].spec;
    if (s->when == WEIR_AFTER) bytes += p->values[s->out[0]].bytes;
  }
  return bytes;
}

/* What keeps the task's work from being a graph. */
static void look_at(const weir_program *p, const weir_ptask *task,
                    weir_gpu_task *out) {
  for (uint32_t i = task->first; i < task->last; i++) {
    const weir_instr_spec *s = &p->instrs[i].spec;
    out->asks = out->asks || s->asks;
    out->calls += s->calls > 0 ? s->calls : 1;
  }
}

static weir_status make_tasks(weir_frame *f, weir_gpu_frame *g,
                              weir_error *err) {
  uint32_t count = f->program->task_count;
  size_t bytes =
      ((size_t)count + 1) * sizeof *g->found + sizeof(weir_gpu_asked);
  void *found = NULL;
  g->tasks = weir_alloc_array(f->program->env->alloc, (size_t)count + 1,
                              sizeof *g->tasks);
  if (g->tasks == NULL) return weir_fail_memory(err, count * sizeof *g->tasks);
  WEIR_TRY(weir_gpu_host_alloc_waiting(g->gpu, bytes, &found, err));
  g->found = found;
  g->begin = g->found + count;
  g->asked = (weir_gpu_asked *)(void *)(g->begin + 1);
  for (uint32_t t = 0; t < count; t++) {
    g->tasks[t].task = &f->tasks[t];
    g->tasks[t].found = &g->found[t];
    g->tasks[t].output_bytes = output_bytes(f->program, &f->program->tasks[t]);
    look_at(f->program, &f->program->tasks[t], &g->tasks[t]);
    WEIR_TRY(weir_gpu_event_waiting(g->gpu, &g->tasks[t].end.event, err));
    WEIR_TRY(weir_gpu_graphs_create(&g->tasks[t], err));
  }
  return WEIR_OK;
}

weir_status weir_gpu_frame_create(weir_frame *f, weir_error *err) {
  const weir_program *p = f->program;
  weir_gpu_frame *g = weir_alloc_array(p->env->alloc, 1, sizeof *g);
  f->gpu = g;
  if (g == NULL) return weir_fail_memory(err, sizeof *g);
  g->gpu = p->gpu;
  pthread_mutex_init(&g->copy_lock, NULL);
  void *staged = NULL;
  WEIR_TRY(weir_gpu_queue_waiting(g->gpu, &g->queue, err));
  WEIR_TRY(weir_gpu_event_waiting(g->gpu, &g->looked, err));
  WEIR_TRY(
      weir_gpu_alloc_waiting(g->gpu, sizeof(weir_body_block), &g->block, err));
  if (p->memory_bytes > 0)
    WEIR_TRY(weir_gpu_alloc_waiting(g->gpu, p->memory_bytes, &g->memory, err));
  if (p->staged_bytes > 0)
    WEIR_TRY(
        weir_gpu_host_alloc_waiting(g->gpu, p->staged_bytes, &staged, err));
  g->staged = staged;
  f->memory = g->memory.handle;
  WEIR_TRY(make_tasks(f, g, err));
  return weir_gpu_peers_create(f, err);
}

void weir_gpu_frame_release(weir_frame *f) {
  weir_gpu_frame *g = f->gpu;
  if (g == NULL) return;
  weir_device *d = g->gpu->gpu.device;
  d->vt->queue_release(d, g->queue);
  weir_gpu_peers_release(f);
  d->vt->event_release(d, g->looked);
  for (uint32_t t = 0; g->tasks != NULL && t < f->program->task_count; t++) {
    if (g->tasks[t].task == NULL) continue; /* not made */
    weir_gpu_graphs_release(&g->tasks[t]);
    weir_gpu_trace_release(&g->tasks[t]);
    d->vt->event_release(d, g->tasks[t].end.event);
  }
  if (g->memory.handle != NULL) d->vt->free(d, &g->memory);
  if (g->block.handle != NULL) d->vt->free(d, &g->block);
  d->vt->host_free(d, g->staged);
  d->vt->host_free(d, g->found);
  pthread_mutex_destroy(&g->copy_lock);
  weir_free(f->program->env->alloc, g->tasks);
  weir_free(f->program->env->alloc, g);
  f->gpu = NULL;
}

/* ---- Queueing */

/* Of a body's frame too; then |traced| is NULL, since a trace has the
 * instruction around it. */
static weir_status run_one(weir_frame *f, weir_gpu_task *traced,
                           weir_exec_ctx *ctx, uint32_t i, weir_error *err) {
  const weir_program *p = f->program;
  weir_args args = {.io = f->table + p->code[i].io,
                    .state = p->code[i].state,
                    .scratch = f->memory + p->code[i].scratch,
                    .ctx = &ctx->base,
                    .err = err};
  WEIR_TRY(p->code[i].run(&args));
  if (traced != NULL) WEIR_TRY(weir_gpu_trace_mark(traced, i, err));
  if (!f->options.trap_nan) return WEIR_OK;
  WEIR_TRY(weir_gpu_look_wait(ctx->gpu, err));
  WEIR_TRY(weir_gpu_look_trap(f, i, args.io, err));
  return traced != NULL ? weir_gpu_trace_mark(traced, WEIR_NO_INDEX, err)
                        : WEIR_OK;
}

weir_status weir_gpu_frame_run_body(weir_frame *f, const weir_exec_ctx *outer,
                                    uint32_t *at, weir_error *err) {
  weir_gpu_run run = *outer->base.gpu;
  weir_exec_ctx ctx = *outer;
  ctx.base.gpu = &run;
  for (*at = 0; *at < f->program->instr_count; ++*at) {
    run.instr = f->number + *at;
    WEIR_TRY(run_one(f, NULL, &ctx, *at, err));
  }
  return WEIR_OK;
}

static void fail_all(weir_frame *f, const weir_ptask *task, weir_status status,
                     const weir_error *why) {
  for (uint32_t i = task->first; i < task->last; i++) {
    weir_error err = *why;
    if (!weir_frame_pass_poison(f, i)) weir_frame_fail(f, i, status, &err);
  }
}

static bool is_first(const weir_frame_task *t) {
  const weir_program *p = t->frame->program;
  for (uint32_t i = 0; i < t->index; i++)
    if (!p->tasks[i].async) return false;
  return true;
}

static weir_exec_ctx context(weir_frame *f, weir_gpu_run *run) {
  weir_gpu_frame *g = f->gpu;
  weir_body_block *block = g->block.handle;
  *run = (weir_gpu_run){.gpu = &g->gpu->gpu,
                        .queue = g->queue,
                        .block = block,
                        .step = &block->step};
  return (weir_exec_ctx){.base = {.workers = 1,
                                  .step = f->options.step,
                                  .hold = weir_frame_hold,
                                  .gpu = run},
                         .frame = f,
                         .gpu = g};
}

/* The block as it is at the beginning of a run. */
static weir_status write_block(weir_gpu_frame *g, weir_error *err) {
  weir_device *d = g->gpu->gpu.device;
  return d->vt->copy_in(d, g->queue, (weir_device_place){&g->block, 0},
                        g->begin, sizeof *g->begin, err);
}

/* And as it is when a task has ended. */
static weir_status read_block(weir_gpu_frame *g, const weir_gpu_task *gt,
                              weir_error *err) {
  weir_device *d = g->gpu->gpu.device;
  return d->vt->copy_out(d, g->queue, gt->found,
                         (weir_device_place){&g->block, 0}, sizeof *gt->found,
                         err);
}

static void share(void *self, int64_t blocks, weir_block_fn fn, void *arg) {
  const weir_exec_ctx *ctx = self;
  weir_worker_share(ctx->worker, ctx->base.workers, blocks, fn, arg);
}

/* Copies of the host, and those that no graph may have, into the queue;
 * |worker| NULL: on this thread. */
static void run_hosts(weir_frame_task *t, weir_worker *worker,
                      weir_instr_when when) {
  weir_frame *f = t->frame;
  const weir_program *p = f->program;
  weir_error err = WEIR_ERROR_INIT;
  weir_gpu_run run;
  weir_exec_ctx ctx = {
      .base = {.parallel_for = worker != NULL ? share : weir_serial_for,
               .workers = weir_pool_threads(f->pool),
               .gpu = &run},
      .frame = f,
      .worker = worker};
  (void)context(f, &run);
  ctx.base.self = &ctx;
  for (uint32_t i = p->tasks[t->index].first; i < p->tasks[t->index].last;
       i++) {
    if (p->instrs[i].spec.when != when || weir_frame_pass_poison(f, i))
      continue;
    const weir_args args = {.io = f->table + p->code[i].io,
                            .state = p->code[i].state,
                            .ctx = &ctx.base,
                            .err = &err};
    weir_status s = p->code[i].run(&args);
    if (s != WEIR_OK) weir_frame_fail(f, i, s, &err);
  }
}

/* All work of the task, each instruction with its own failure. */
static void queue_each(weir_frame_task *t) {
  weir_frame *f = t->frame;
  weir_gpu_frame *g = f->gpu;
  const weir_ptask *task = &f->program->tasks[t->index];
  weir_error err = WEIR_ERROR_INIT;
  weir_gpu_run run;
  weir_exec_ctx ctx = context(f, &run);
  weir_gpu_task *traced = f->options.trace != NULL ? &g->tasks[t->index] : NULL;
  weir_status s = WEIR_OK;
  ctx.base.self = &ctx;
  if (is_first(t)) g->begun = write_block(g, &g->why);
  if (g->begun != WEIR_OK) {
    fail_all(f, task, g->begun, &g->why);
    return;
  }
  if (traced != NULL) s = weir_gpu_trace_begin(traced, &err);
  if (s != WEIR_OK) {
    fail_all(f, task, s, &err);
    return;
  }
  for (uint32_t i = task->first; i < task->last; i++) {
    if (weir_frame_check_stop(f) != WEIR_OK) break;
    if (f->program->instrs[i].spec.when != WEIR_QUEUED) continue;
    if (weir_frame_pass_poison(f, i)) continue;
    run.instr = i;
    s = run_one(f, traced, &ctx, i, &err);
    if (s != WEIR_OK) weir_frame_fail(f, i, s, &err);
  }
  s = read_block(g, &g->tasks[t->index], &err);
  if (s != WEIR_OK) fail_all(f, task, s, &err);
}

/* ---- Graphs */

static bool may_keep(const weir_frame *f, const weir_gpu_task *gt) {
  weir_exec_gpu *g = f->gpu->gpu;
  weir_gpu_queued why = f->options.trace != NULL ? WEIR_GPU_TRACED
                        : f->options.trap_nan    ? WEIR_GPU_TRAPS
                        : gt->asks               ? WEIR_GPU_ASKS
                        : gt->calls > kMostCalls ? WEIR_GPU_LONG
                        : g->gpu.device->vt->capture_begin == NULL
                            ? WEIR_GPU_NO_CAPTURE
                            : WEIR_GPU_REPLAYED;
  if (why != WEIR_GPU_REPLAYED) weir_gpu_graph_explain(g, why, NULL);
  return why == WEIR_GPU_REPLAYED && !gt->never && atomic_load(&f->failed) == 0;
}

/* The same work into a graph, up to the first failure. */
static weir_status keep_each(weir_frame_task *t, weir_error *err) {
  weir_frame *f = t->frame;
  const weir_ptask *task = &f->program->tasks[t->index];
  weir_gpu_run run;
  weir_exec_ctx ctx = context(f, &run);
  ctx.base.self = &ctx;
  if (is_first(t)) WEIR_TRY(write_block(f->gpu, err));
  for (uint32_t i = task->first; i < task->last; i++) {
    if (f->program->instrs[i].spec.when != WEIR_QUEUED) continue;
    run.instr = i;
    WEIR_TRY(run_one(f, NULL, &ctx, i, err));
  }
  return read_block(f->gpu, &f->gpu->tasks[t->index], err);
}

/* After a failure the task is never tried again: it is queued as ever, and what
 * was wrong with it is said then. A run that has to stop in a loop is none. */
static void keep(weir_frame_task *t, weir_gpu_graph *kept) {
  weir_gpu_frame *g = t->frame->gpu;
  weir_device *d = g->gpu->gpu.device;
  weir_device_graph *graph = NULL;
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = d->vt->capture_begin(d, g->queue, &err);
  if (s == WEIR_OK) {
    weir_status ended;
    s = keep_each(t, &err);
    ended = d->vt->capture_end(d, g->queue, &graph, &err);
    if (s == WEIR_OK) s = ended;
  }
  if (s == WEIR_OK)
    kept->graph = graph;
  else if (graph != NULL)
    d->vt->graph_release(d, graph);
  if (s == WEIR_OK || weir_frame_check_stop(t->frame) != WEIR_OK) return;
  g->tasks[t->index].never = true;
  weir_gpu_graph_explain(g->gpu, WEIR_GPU_REFUSED, &err);
}

/* Whether the task's work was queued by its graph. */
static bool replay(weir_frame_task *t) {
  weir_frame *f = t->frame;
  weir_device *d = f->gpu->gpu->gpu.device;
  weir_gpu_task *gt = &f->gpu->tasks[t->index];
  weir_error err = WEIR_ERROR_INIT;
  if (!may_keep(f, gt)) return false;
  weir_gpu_graph *kept = weir_gpu_graph_find(gt);
  if (kept->graph == NULL && kept->seen >= 2) keep(t, kept);
  if (kept->graph == NULL || weir_frame_check_stop(f) != WEIR_OK) return false;
  weir_status s = d->vt->replay(d, f->gpu->queue, kept->graph, &err);
  if (s != WEIR_OK) fail_all(f, &f->program->tasks[t->index], s, &err);
  if (is_first(t)) f->gpu->begun = s;
  if (s != WEIR_OK) f->gpu->why = err;
  return true;
}

/* false: the device could not, so the task's instructions have failed. */
static bool wait_for_peers(weir_frame_task *t) {
  weir_frame *f = t->frame;
  weir_gpu_frame *g = f->gpu;
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = weir_gpu_peers_wait(t, &err);
  if (s == WEIR_OK) return true;
  fail_all(f, &f->program->tasks[t->index], s, &err);
  if (is_first(t)) {
    g->begun = s;
    g->why = err;
  }
  return false;
}

void weir_gpu_frame_queue(weir_frame_task *t, weir_worker *worker) {
  weir_frame *f = t->frame;
  weir_gpu_frame *g = f->gpu;
  if (is_first(t)) {
    g->begun = WEIR_OK;
    g->why = (weir_error)WEIR_ERROR_INIT;
    *g->begin = (weir_body_block){.step = f->options.step};
  }
  g->tasks[t->index].found->fault.instr = 0; /* if it cannot be read */
  if (!weir_gpu_turn_granted(t, &g->begun, &g->why)) {
    fail_all(f, &f->program->tasks[t->index], g->begun, &g->why);
    return;
  }
  run_hosts(t, worker, WEIR_BEFORE);
  if (wait_for_peers(t) && !replay(t)) queue_each(t);
}

/* ---- The end of a task */

/* Poison of a copy from another GPU that failed after the task was queued. */
static void pass_poison(weir_frame *f, const weir_ptask *task) {
  if (atomic_load(&f->failed) == 0) return;
  for (uint32_t i = task->first; i < task->last; i++)
    (void)weir_frame_pass_poison(f, i);
}

/* The fault, if it is of |task|; and poison over what came after it. */
static void tell_fault(weir_frame *f, const weir_ptask *task,
                       const weir_body_fault *fault) {
  uint32_t inner, at;
  const weir_frame *where =
      weir_frame_numbered(f, (uint32_t)fault->instr - 1, &inner, &at);
  const weir_instr_spec *refused = &where->program->instrs[inner].spec;
  weir_error err = WEIR_ERROR_INIT;
  for (uint32_t i = task->first; i < task->last; i++) {
    const weir_instr_spec *s = &f->program->instrs[i].spec;
    if (weir_frame_pass_poison(f, i) || i < at) continue;
    if (i == at) {
      weir_status status = refused->fault(refused->state, fault, &err);
      weir_program_blame(where->program, inner, status, &err);
      weir_frame_fail(f, i, status, &err);
    } else if (s->checks) {
      weir_frame_poison_by(f, i, at);
    }
  }
}

static void task_ended(void *self, weir_status status, const weir_error *err) {
  weir_gpu_task *gt = self;
  weir_frame *f = gt->task->frame;
  const weir_ptask *task = &f->program->tasks[gt->task->index];
  weir_error why = WEIR_ERROR_INIT;
  weir_gpu_turn_leave(gt->task);
  if (status == WEIR_OK && f->options.trace != NULL) {
    status = weir_gpu_trace_tell(gt, &why);
    err = &why;
  }
  if (status != WEIR_OK)
    fail_all(f, task, status, err);
  else if (f->gpu->begun == WEIR_OK && gt->found->fault.instr != 0)
    tell_fault(f, task, &gt->found->fault);
  else
    pass_poison(f, task);
  if (gt->output_bytes > kLargeOutputs) {
    gt->over = true;
    weir_pool_submit(f->pool, &gt->task->task);
    return;
  }
  run_hosts(gt->task, NULL, WEIR_AFTER);
  weir_gpu_task_ended(gt->task);
}

bool weir_gpu_frame_is_over(const weir_frame_task *t) {
  return t->frame->gpu->tasks[t->index].over;
}

void weir_gpu_frame_finish(weir_frame_task *t, weir_worker *worker) {
  t->frame->gpu->tasks[t->index].over = false;
  run_hosts(t, worker, WEIR_AFTER);
}

bool weir_gpu_frame_end(weir_frame_task *t) {
  weir_gpu_frame *g = t->frame->gpu;
  weir_gpu_task *gt = &g->tasks[t->index];
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = g->gpu->gpu.device;
  weir_status s = d->vt->record(d, g->queue, gt->end.event, &err);
  gt->end.done = task_ended;
  gt->end.self = gt;
  if (s == WEIR_OK) return true;
  weir_gpu_settle(g->gpu, g->queue, g->looked);
  weir_gpu_turn_leave(t);
  fail_all(t->frame, &t->frame->program->tasks[t->index], s, &err);
  return false;
}

void weir_gpu_frame_await(weir_frame_task *t) {
  weir_gpu_frame *g = t->frame->gpu;
  weir_gpu_await(g->gpu, &g->tasks[t->index].end);
}
