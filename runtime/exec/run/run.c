/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/run/run.h"

#include <assert.h>
#include <string.h>

#include "runtime/base/map.h"
#include "runtime/exec/channel/channel_local.h"
#include "runtime/exec/gpu/gpu_frame.h"
#include "runtime/exec/parallel.h"
#include "runtime/exec/pool.h"
#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/run/frame.h"
#include "runtime/exec/run/run_slow.h"
#include "runtime/exec/run/run_tasks.h"
#include "runtime/exec/run/trace.h"

/* The executor: runs the instructions of a frame, alone or on the pool.
 *
 * Two loops share the work. run_fast does nothing between instructions; the
 * careful one (run_slow.c) takes over for the rest of a task as soon as |slow|
 * is set, by a failure, a trace or a trap. A run with a deadline or a cancel
 * flag leaves the fast loop after each span of instructions (weir_code) to look
 * at them. A long instruction is a span alone, and its loops look before each
 * block: blocks that come too late are left out, the kernel ends with bytes
 * that mean nothing, and the look after it ends the run, so nobody reads them.
 * Tasks and their order are in run_tasks.c. */

weir_status weir_frame_check_stop(weir_frame *f) {
  int stopped = atomic_load_explicit(&f->stopped, memory_order_relaxed);
  if (stopped != WEIR_OK || !f->watch) return (weir_status)stopped;
  if (f->options.cancel != NULL &&
      atomic_load_explicit(f->options.cancel, memory_order_relaxed)) {
    stopped = WEIR_CANCELLED;
  } else if (f->options.deadline_ns != 0) {
    const weir_clock *clock = f->program->env->clock;
    if (clock->now_ns(clock->self) >= f->options.deadline_ns)
      stopped = WEIR_DEADLINE_EXCEEDED;
  }
  if (stopped != WEIR_OK) atomic_store(&f->stopped, stopped);
  return (weir_status)stopped;
}

static void shared_for(void *self, int64_t blocks, weir_block_fn fn,
                       void *arg) {
  const weir_exec_ctx *ctx = self;
  weir_worker_share(ctx->worker, ctx->base.workers, blocks, fn, arg);
}

/* Blocks under a deadline. */
typedef struct timed_blocks {
  weir_frame *frame;
  weir_block_fn fn;
  void *arg;
} timed_blocks;

static void timed_block(void *arg, int64_t block, int worker) {
  const timed_blocks *t = arg;
  if (weir_frame_check_stop(t->frame) == WEIR_OK) t->fn(t->arg, block, worker);
}

static bool is_over(void *self) {
  const weir_exec_ctx *ctx = self;
  return weir_frame_check_stop(ctx->frame) != WEIR_OK;
}

static void timed_for(void *self, int64_t blocks, weir_block_fn fn, void *arg) {
  const weir_exec_ctx *ctx = self;
  timed_blocks t = {ctx->frame, fn, arg};
  if (ctx->worker == NULL || ctx->frame->program->threads == 1)
    weir_serial_for(self, blocks, timed_block, &t);
  else
    shared_for(self, blocks, timed_block, &t);
}

static weir_exec_ctx context(weir_frame *f, weir_worker *worker) {
  bool alone = worker == NULL || f->program->threads == 1;
  weir_exec_ctx ctx = {
      .base = {.parallel_for = alone ? weir_serial_for : shared_for,
               .workers = f->program->threads,
               .step = f->options.step,
               .hold = weir_frame_hold},
      .frame = f,
      .worker = worker};
  return ctx;
}

/* The hot loop. Returns where it failed, or |last|. Members of the frame are
 * kept in locals, since the compiler must assume that a kernel writes to it. */
static uint32_t run_fast(weir_frame *f, const weir_exec_ctx *ctx,
                         uint32_t first, uint32_t last, weir_error *err,
                         weir_status *status) {
  assert(first <= last && last <= f->program->instr_count);
  const weir_code *code = f->program->code + first;
  const weir_code *end = f->program->code + last;
  void **table = f->table;
  char *memory = f->memory;
  weir_args args = {.ctx = &ctx->base, .err = err};
  for (; code < end; code++) {
    args.io = table + code->io;
    args.state = code->state;
    args.scratch = memory + code->scratch;
    weir_status s = code->run(&args);
    if (__builtin_expect(s != WEIR_OK, 0)) {
      *status = s;
      return (uint32_t)(code - f->program->code);
    }
  }
  return last;
}

/* Instructions from |first| on until the next look at the deadline; |*next| is
 * where to go on, or the one that failed. */
static weir_status run_span(weir_frame *f, weir_exec_ctx *ctx, uint32_t first,
                            uint32_t last, uint32_t *next, weir_error *err) {
  weir_status s = WEIR_OK;
  uint32_t end = last, span = f->program->code[first].span;
  if (f->watch && span < last - first) end = first + span;
  void (*plain)(void *, int64_t, weir_block_fn, void *) =
      ctx->base.parallel_for;
  if (f->watch && weir_code_is_long(f->program, first)) {
    end = first + 1;
    ctx->base.parallel_for = timed_for;
    ctx->base.over = is_over;
  }
  *next = run_fast(f, ctx, first, end, err, &s);
  ctx->base.parallel_for = plain;
  ctx->base.over = NULL;
  return s;
}

static void run_range(weir_frame *f, weir_exec_ctx *ctx, uint32_t first,
                      uint32_t last) {
  weir_error err;
  ctx->base.self = ctx;
  err.struct_size = sizeof err;
  err.id[0] = 0;
  while (first < last) {
    if (weir_frame_check_stop(f) != WEIR_OK) return;
    if (atomic_load_explicit(&f->slow, memory_order_relaxed)) {
      if (f->watch) {
        ctx->base.parallel_for = timed_for;
        ctx->base.over = is_over;
      }
      weir_frame_run_slow(f, ctx, first, last);
      return;
    }
    weir_status s = run_span(f, ctx, first, last, &first, &err);
    if (s == WEIR_OK) continue;
    weir_frame_fail(f, first, s, &err);
    first++;
  }
  if (f->watch) (void)weir_frame_check_stop(f);
}

void weir_frame_run_range(weir_frame *f, weir_worker *worker, uint32_t first,
                          uint32_t last) {
  weir_exec_ctx ctx = context(f, worker);
  run_range(f, &ctx, first, last);
}

weir_status weir_frame_stop_error(weir_status stopped, weir_error *err) {
  if (stopped == WEIR_CANCELLED)
    return weir_fail(err, WEIR_W5005, NULL, "the run was cancelled");
  return weir_fail(err, WEIR_W5006, NULL, "the run passed its deadline");
}

weir_status weir_frame_value_status(const weir_frame *f, uint32_t value,
                                    weir_error *err) {
  if (value == WEIR_NO_INDEX) return WEIR_OK;
  uint8_t cause = f->poison[f->program->values[value].root];
  weir_status stopped = (weir_status)atomic_load(&f->stopped);
  if (cause == 0 && stopped != WEIR_OK)
    return weir_frame_stop_error(stopped, err);
  if (cause == 0) return WEIR_OK;
  const weir_error *why = &f->failures[cause - 1];
  weir_error_copy(err, why);
  return why->code;
}

static void begin(weir_frame *f, weir_pool *pool,
                  const weir_run_options *options) {
  static const weir_run_options kNone = {0};
  f->pool = pool;
  f->options = options != NULL ? *options : kNone;
  f->watch = f->options.cancel != NULL || f->options.deadline_ns != 0;
  bool slow = f->options.trace != NULL || f->options.trap_nan;
  atomic_store_explicit(&f->slow, slow, memory_order_relaxed);
  atomic_store_explicit(&f->stopped, WEIR_OK, memory_order_relaxed);
  if (atomic_load_explicit(&f->failed, memory_order_relaxed) == 0) return;
  atomic_store_explicit(&f->failed, 0, memory_order_relaxed);
  memset(f->poison, 0, f->program->value_count);
}

/* Of all parts: the failed node that comes first, else why it was stopped. */
static weir_status first_failure(const weir_frame *head, weir_error *err) {
  weir_status stopped = WEIR_OK;
  const weir_error *best = NULL;
  uint32_t order = 0;
  for (const weir_frame *f = head; f != NULL; f = f->next_part) {
    int failed = atomic_load(&f->failed);
    if (stopped == WEIR_OK) stopped = (weir_status)atomic_load(&f->stopped);
    for (int i = 0; i < failed && i < WEIR_FRAME_FAILURES; i++) {
      if (best != NULL && f->failure_orders[i] >= order) continue;
      best = &f->failures[i];
      order = f->failure_orders[i];
    }
  }
  if (best == NULL)
    return stopped == WEIR_OK ? WEIR_OK : weir_frame_stop_error(stopped, err);
  weir_error_copy(err, best);
  return best->code;
}

/* The frame's own channel may hold bytes that no receiver took, or an abort: it
 * goes, since all its ends have ended, and the next run makes another. The one
 * to other tasks stays: the caller that numbers its steps drops this one. */
static weir_status end_badly(weir_frame *head, weir_error *err) {
  weir_channel_release(head->channel);
  head->channel = NULL;
  return first_failure(head, err);
}

static inline weir_status result(weir_frame *head, weir_error *err) {
  bool ended_well = true;
  for (const weir_frame *f = head; f != NULL; f = f->next_part)
    ended_well = ended_well &&
                 !atomic_load_explicit(&f->failed, memory_order_relaxed) &&
                 !atomic_load_explicit(&f->stopped, memory_order_relaxed);
  return __builtin_expect(ended_well, 1) ? WEIR_OK : end_badly(head, err);
}

weir_status weir_frame_result(weir_frame *head, weir_error *err) {
  return result(head, err);
}

/* Channels that the program needs are there. */
static __attribute__((noinline)) weir_status find_channels(weir_frame *head,
                                                           weir_error *err) {
  if (head->comm_outer && head->outer == NULL)
    return weir_fail(err, WEIR_W9001, NULL,
                     "the program has edges to other tasks, the session no "
                     "channel");
  head->channel_runs++;
  if (!head->comm_channel || head->channel != NULL) return WEIR_OK;
  return weir_channel_local_create(head->program->env, WEIR_CHANNEL_MEET,
                                   &head->channel, err);
}

/* This and result() are inline: a step of one cheap node is some 30 ns, and
 * calls would be a tenth of them. */
static inline weir_status begin_all(weir_frame *head, weir_pool *pool,
                                    const weir_run_options *options,
                                    weir_error *err) {
  if (__builtin_expect(head->comm, 0)) WEIR_TRY(find_channels(head, err));
  for (weir_frame *f = head; f != NULL; f = f->next_part)
    begin(f, pool, options);
  return WEIR_OK;
}

weir_status weir_frame_begin(weir_frame *head, weir_pool *pool,
                             const weir_run_options *options, weir_error *err) {
  return begin_all(head, pool, options, err);
}

weir_status weir_frame_run(weir_frame *head, weir_pool *pool,
                           const weir_run_options *options, weir_error *err) {
  const weir_program *p = head->program;
  WEIR_TRY(begin_all(head, pool, options, err));
  /* A cheap program is not worth a slot of the pool. */
  weir_worker *worker = pool != NULL && (!p->cheap || p->gpu != NULL)
                            ? weir_pool_enter(pool)
                            : NULL;
  int omp = pool != NULL ? weir_openmp_single(weir_pool_openmp(pool)) : 0;
  bool joined = head->next_part != NULL || p->comm || p->gpu != NULL;
  bool alone = options != NULL && options->alone && !joined;
  if (worker != NULL && !alone && (p->task_count > 1 || joined)) {
    weir_frame_run_tasks(head, worker);
  } else {
    weir_exec_ctx ctx = context(head, alone ? NULL : worker);
    run_range(head, &ctx, 0, p->instr_count);
    if (worker != NULL) weir_pool_leave(worker);
  }
  if (pool != NULL) weir_openmp_restore(weir_pool_openmp(pool), omp);
  return result(head, err);
}

/* The instructions of a nested frame, up to the first failure, |*at|, or until
 * the run has to stop. */
static weir_status run_all(weir_frame *child, weir_exec_ctx *ctx, uint32_t *at,
                           weir_error *err) {
  while (*at < child->program->instr_count) {
    WEIR_TRY(run_span(child, ctx, *at, child->program->instr_count, at, err));
    if (child->watch && weir_frame_check_stop(child) != WEIR_OK)
      return weir_frame_stop_error((weir_status)atomic_load(&child->stopped),
                                   err);
  }
  return WEIR_OK;
}

/* Nested frames stop at their first failure: their instruction fails as a
 * whole, so they need no poison. One thread, no tasks; kernels may still share
 * their blocks out. */
static weir_status run_nested(weir_frame *child, const weir_args *args,
                              uint64_t step, uint64_t turns) {
  const weir_exec_ctx *outer = weir_exec_of(args);
  const weir_program *p = child->program;
  weir_status stopped = weir_frame_check_stop(outer->frame);
  if (stopped != WEIR_OK) return weir_frame_stop_error(stopped, args->err);
  weir_exec_ctx ctx = *outer;
  weir_status s = WEIR_OK;
  if (p->gpu == NULL) ctx.base = context(child, outer->worker).base;
  ctx.base.self = &ctx;
  ctx.base.step = step;
  ctx.turns = turns;
  ctx.frame = child;
  child->head = outer->frame->head;
  child->pool = outer->frame->pool;
  child->options = outer->frame->options;
  child->watch = outer->frame->watch;
  atomic_store_explicit(&child->stopped, WEIR_OK, memory_order_relaxed);
  uint32_t at = 0;
  if (p->gpu != NULL)
    s = weir_gpu_frame_run_body(child, &ctx, &at, args->err);
  else if (child->options.trap_nan)
    s = weir_frame_run_trapped(child, &ctx, args->err, &at);
  else if (child->options.trace != NULL &&
           weir_trace_has_bodies(child->options.trace))
    s = weir_frame_run_timed(child, &ctx, args->err, &at);
  else
    s = run_all(child, &ctx, &at, args->err);
  if (s != WEIR_OK && s != (weir_status)atomic_load(&child->stopped))
    weir_program_blame(p, at, s, args->err);
  return s;
}

weir_status weir_frame_run_nested(weir_frame *child, const weir_args *args) {
  return run_nested(child, args, args->ctx->step, weir_exec_of(args)->turns);
}

/* The hash gives each turn of each step a number of its own for random ops. */
weir_status weir_frame_run_turn(weir_frame *child, const weir_args *args,
                                int64_t turn) {
  uint64_t step = weir_hash_bytes(&turn, sizeof turn, args->ctx->step);
  uint64_t turns = weir_exec_of(args)->turns;
  if (child->program->comm) /* 0 is no turn */
    turns = weir_hash_bytes(&turn, sizeof turn, turns) | 1;
  return run_nested(child, args, step, turns);
}

weir_status weir_frame_fetch_status(const weir_frame *f, uint32_t fetch,
                                    weir_error *err) {
  while (f->next_part != NULL && f->program->fetches[fetch] == WEIR_NO_INDEX)
    f = f->next_part;
  return weir_frame_value_status(f, f->program->fetches[fetch], err);
}

uint32_t weir_frame_fetch_order(const weir_frame *f, uint32_t fetch) {
  while (f->next_part != NULL && f->program->fetches[fetch] == WEIR_NO_INDEX)
    f = f->next_part;
  uint32_t value = f->program->fetches[fetch];
  if (value == WEIR_NO_INDEX) return WEIR_NO_INDEX;
  uint8_t cause = f->poison[f->program->values[value].root];
  return cause != 0 ? f->failure_orders[cause - 1] : WEIR_NO_INDEX;
}

uint32_t weir_frame_first_order(const weir_frame *head) {
  uint32_t first = WEIR_NO_INDEX;
  for (const weir_frame *f = head; f != NULL; f = f->next_part) {
    int failed = atomic_load(&f->failed);
    for (int i = 0; i < failed && i < WEIR_FRAME_FAILURES; i++)
      if (f->failure_orders[i] < first) first = f->failure_orders[i];
  }
  return first;
}
