/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/run/run_slow.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/table.h"
#include "runtime/exec/futex.h"
#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/run/frame.h"
#include "runtime/exec/run/run.h"
#include "runtime/exec/run/trace.h"

/* The executor's careful side: runs after a failure, with a trace, or looking
 * for NaN; and the errors of failed nodes.
 *
 * A failed instruction poisons its outputs with the number of its failure; an
 * instruction that reads a poisoned value is not run and passes the number on.
 * So all that does not depend on the failure is still computed, and a fetch
 * that does reports the first cause. Poison needs no lock to be read: readers
 * are later in the same task, or in tasks that wait for it.
 *
 * A frame keeps WEIR_FRAME_FAILURES failures. Later ones share the last place,
 * which keeps that of the earliest node, so the failure that a run reports does
 * not depend on the order of threads. */

static void append_shapes(const weir_program *p, const weir_instr_spec *s,
                          char *text, size_t capacity) {
  size_t used = strlen(text);
  const char *lead = " (inputs ";
  for (uint32_t k = 0; k < s->in_count && used < capacity; k++) {
    if (s->in[k] == WEIR_NO_INDEX) continue;
    const weir_pvalue *v = &p->values[s->in[k]];
    weir_shape shape = weir_shape_of(v->rank, v->dims);
    char dims[128];
    weir_shape_print(&shape, NULL, NULL, dims, sizeof dims);
    int n = snprintf(text + used, capacity - used, "%s%s%s", lead,
                     weir_dtype_name(v->dtype), dims);
    if (n < 0 || (size_t)n >= capacity - used) {
      text[used] = 0; /* all of it or nothing */
      return;
    }
    used += (size_t)n;
    lead = ", ";
  }
  if (lead[0] == ',' && used + 1 < capacity) memcpy(text + used, ")", 2);
}

void weir_program_blame(const weir_program *p, uint32_t instr,
                        weir_status status, weir_error *err) {
  const weir_instr_spec *s = &p->instrs[instr].spec;
  if (err == NULL || err->node[0] != 0) return;
  if (err->id[0] == 0)
    weir_fail(err, WEIR_W5001, NULL, "%s failed: %s",
              s->kernel != NULL ? s->kernel : "instruction",
              weir_status_name(status));
  if (s->node.size == 0) return; /* of the whole run: no node is to blame */
  weir_error_set_node(err, s->node.data, s->node.size);
  if (err->line == 0 && s->mark.line != 0 && s->mark.file != NULL) {
    snprintf(err->file, sizeof err->file, "%s", s->mark.file);
    err->line = s->mark.line;
    err->col = s->mark.col;
    err->end_line = s->mark.end_line;
    err->end_col = s->mark.end_col;
  }
  append_shapes(p, s, err->message, sizeof err->message);
}

static void poison_outputs(weir_frame *f, uint32_t instr, uint8_t cause) {
  const weir_program *p = f->program;
  const weir_instr_spec *s = &p->instrs[instr].spec;
  assert(cause > 0 && cause <= WEIR_FRAME_FAILURES);
  for (uint32_t k = 0; k < s->out_count; k++)
    if (s->out[k] != WEIR_NO_INDEX)
      f->poison[p->values[s->out[k]].root] = cause;
}

void weir_frame_fail(weir_frame *f, uint32_t instr, weir_status status,
                     weir_error *err) {
  const weir_instr_spec *s = &f->program->instrs[instr].spec;
  assert(status != WEIR_OK && f->failures != NULL);
  /* A nested body that ended early because the run stops has not failed. */
  if (weir_frame_check_stop(f) != WEIR_OK) return;
  weir_program_blame(f->program, instr, status, err);
  err->code = status;
  pthread_mutex_lock(&f->failure_lock);
  int n = atomic_load(&f->failed);
  int at = n < WEIR_FRAME_FAILURES ? n : WEIR_FRAME_FAILURES - 1;
  if (n < WEIR_FRAME_FAILURES || s->node_order < f->failure_orders[at]) {
    f->failures[at] = *err;
    f->failure_orders[at] = s->node_order;
  }
  atomic_store(&f->failed, n + 1);
  atomic_store(&f->slow, true);
  if (f->options.observer != NULL && f->options.observer->failed != NULL)
    f->options.observer->failed(f->options.observer->self, err);
  poison_outputs(f, instr, (uint8_t)(at + 1));
  pthread_mutex_unlock(&f->failure_lock);
  err->id[0] = 0;
  err->node[0] = 0;
}

/* The cause of a poisoned input, or 0. */
static uint8_t cause_of(const weir_frame *f, uint32_t instr) {
  const weir_instr_spec *s = &f->program->instrs[instr].spec;
  for (uint32_t k = 0; k < s->in_count; k++)
    if (s->in[k] != WEIR_NO_INDEX) {
      uint8_t cause = f->poison[f->program->values[s->in[k]].root];
      if (cause != 0) return cause;
    }
  return 0;
}

bool weir_frame_pass_poison(weir_frame *f, uint32_t instr) {
  if (atomic_load(&f->failed) == 0) return false;
  pthread_mutex_lock(&f->failure_lock);
  uint8_t cause = cause_of(f, instr);
  if (cause != 0) poison_outputs(f, instr, cause);
  pthread_mutex_unlock(&f->failure_lock);
  return cause != 0;
}

void weir_frame_poison_by(weir_frame *f, uint32_t instr, uint32_t by) {
  const weir_instr_spec *s = &f->program->instrs[by].spec;
  pthread_mutex_lock(&f->failure_lock);
  uint8_t cause =
      s->out_count > 0 ? f->poison[f->program->values[s->out[0]].root] : 0;
  if (cause != 0) poison_outputs(f, instr, cause);
  pthread_mutex_unlock(&f->failure_lock);
}

static bool all_finite(const void *data, weir_dtype dtype, size_t bytes) {
  if (dtype == WEIR_F32) {
    const float *x = data;
    for (size_t i = 0; i < bytes / sizeof *x; i++)
      if (!isfinite(x[i])) return false;
  } else if (dtype == WEIR_F64) {
    const double *x = data;
    for (size_t i = 0; i < bytes / sizeof *x; i++)
      if (!isfinite(x[i])) return false;
  }
  return true;
}

/* The same for a value kept 16 images at a time: the last block may have places
 * without an image, which hold anything. */
static bool images_finite(const weir_pvalue *v, const float *x) {
  int64_t images = v->dims[0], blocks = (images + 15) / 16;
  int64_t pixels = (int64_t)(v->bytes / sizeof *x) / (blocks * 16);
  for (int64_t b = 0; b < blocks; b++) {
    int64_t count = images - b * 16 < 16 ? images - b * 16 : 16;
    for (int64_t i = 0; i < pixels; i++, x += 16)
      if (!all_finite(x, WEIR_F32, (size_t)count * sizeof *x)) return false;
  }
  return true;
}

weir_status weir_frame_trap_value(const weir_pvalue *v, uint32_t output,
                                  const void *data, weir_error *err) {
  bool finite = v->layout == WEIR_LAYOUT_N16
                    ? images_finite(v, data)
                    : all_finite(data, v->dtype, v->bytes);
  return finite ? WEIR_OK
                : weir_fail(err, WEIR_W5004, NULL,
                            "output %u holds a NaN or an infinity", output);
}

static weir_status trap(const weir_program *p, uint32_t instr, void *const *io,
                        weir_error *err) {
  const weir_instr_spec *s = &p->instrs[instr].spec;
  for (uint32_t k = 0; k < s->out_count; k++) {
    if (s->out[k] == WEIR_NO_INDEX) continue;
    WEIR_TRY(weir_frame_trap_value(&p->values[s->out[k]], k,
                                   io[s->in_count + k], err));
  }
  return WEIR_OK;
}

weir_status weir_frame_run_trapped(weir_frame *f, const weir_exec_ctx *ctx,
                                   weir_error *err, uint32_t *at) {
  const weir_program *p = f->program;
  weir_args args = {.ctx = &ctx->base, .err = err};
  for (*at = 0; *at < p->instr_count; ++*at) {
    args.io = f->table + p->code[*at].io;
    args.state = p->code[*at].state;
    args.scratch = f->memory + p->code[*at].scratch;
    weir_status s = p->code[*at].run(&args);
    if (s == WEIR_OK) s = trap(p, *at, args.io, err);
    if (s != WEIR_OK) return s;
  }
  return WEIR_OK;
}

const char *weir_instr_category(weir_instr_kind kind) {
  static const char *const kNames[] = {[WEIR_INSTR_KERNEL] = "kernel",
                                       [WEIR_INSTR_COPY] = "copy",
                                       [WEIR_INSTR_SEND] = "send",
                                       [WEIR_INSTR_RECV] = "recv",
                                       [WEIR_INSTR_COLLECTIVE] = "collective",
                                       [WEIR_INSTR_VAR_READ] = "var_read",
                                       [WEIR_INSTR_VAR_COMMIT] = "var_commit",
                                       [WEIR_INSTR_LOOP] = "loop",
                                       [WEIR_INSTR_BRANCH] = "branch",
                                       [WEIR_INSTR_FEED] = "feed",
                                       [WEIR_INSTR_FETCH] = "fetch",
                                       [WEIR_INSTR_CONST] = "const",
                                       [WEIR_INSTR_NONE] = "none"};
  WEIR_TABLE_OF(kNames, WEIR_INSTR_KIND_COUNT);
  return kNames[kind];
}

static void add_event(weir_frame *f, uint32_t instr, int64_t start_ns,
                      int64_t end_ns, int thread, bool by_device) {
  const weir_instr_spec *s = &f->program->instrs[instr].spec;
  weir_trace_event event = {
      .name = s->node,
      .category = weir_instr_category(s->kind),
      .kernel = s->kernel,
      .device = f->program->device,
      .start_ns = start_ns,
      .end_ns = end_ns,
      .step = f->options.step,
      .node = f->program->body ? WEIR_NO_INDEX : s->node_order,
      .part = f->program->part,
      .thread = thread,
      .by_device = by_device,
      .instr = &f->program->instrs[instr],
      .program = f->head->program};
  weir_trace_add(f->options.trace, &event);
}

void weir_frame_trace(weir_frame *f, uint32_t instr, int64_t start_ns,
                      int64_t end_ns, int thread) {
  add_event(f, instr, start_ns, end_ns, thread, false);
}

void weir_frame_trace_device(weir_frame *f, uint32_t instr, int64_t start_ns,
                             int64_t end_ns) {
  add_event(f, instr, start_ns, end_ns, 0, true);
}

/* The row of a trace: 0 for the caller, whose workers come after the pool's; a
 * stream has one row, since its tasks follow each other on any thread. */
static int thread_of(const weir_frame *f, const weir_exec_ctx *ctx) {
  if (f->program->stream || ctx->worker == NULL) return 0;
  int index = ctx->worker->index;
  return index < f->program->threads - 1 ? index + 1 : 0;
}

weir_status weir_frame_run_timed(weir_frame *f, const weir_exec_ctx *ctx,
                                 weir_error *err, uint32_t *at) {
  const weir_program *p = f->program;
  const weir_clock *clock = p->env->clock;
  weir_args args = {.ctx = &ctx->base, .err = err};
  for (*at = 0; *at < p->instr_count; ++*at) {
    args.io = f->table + p->code[*at].io;
    args.state = p->code[*at].state;
    args.scratch = f->memory + p->code[*at].scratch;
    int64_t start_ns = clock->now_ns(clock->self);
    weir_status s = p->code[*at].run(&args);
    weir_frame_trace(f, *at, start_ns, clock->now_ns(clock->self),
                     thread_of(f, ctx));
    if (s != WEIR_OK) return s;
    if (f->watch && (s = weir_frame_check_stop(f)) != WEIR_OK)
      return weir_frame_stop_error(s, err);
  }
  return WEIR_OK;
}

void weir_frame_run_slow(weir_frame *f, const weir_exec_ctx *ctx,
                         uint32_t first, uint32_t last) {
  const weir_program *p = f->program;
  const weir_clock *clock = p->env->clock;
  weir_error err = WEIR_ERROR_INIT;
  weir_args args = {.ctx = &ctx->base, .err = &err};
  for (uint32_t i = first; i < last; i++) {
    if (weir_frame_check_stop(f) != WEIR_OK) return;
    uint8_t cause = atomic_load(&f->failed) != 0 ? cause_of(f, i) : 0;
    if (cause != 0) {
      poison_outputs(f, i, cause);
      continue;
    }
    args.io = f->table + p->code[i].io;
    args.state = p->code[i].state;
    args.scratch = f->memory + p->code[i].scratch;
    int64_t start_ns = 0;
    if (f->options.trace != NULL) start_ns = clock->now_ns(clock->self);
    weir_status s = p->code[i].run(&args);
    if (f->options.trace != NULL)
      weir_frame_trace(f, i, start_ns, clock->now_ns(clock->self),
                       thread_of(f, ctx));
    /* Its loops may have been cut short: then its bytes mean nothing. */
    if (f->watch && weir_frame_check_stop(f) != WEIR_OK) return;
    if (s == WEIR_OK && f->options.trap_nan) s = trap(p, i, args.io, &err);
    if (s != WEIR_OK) weir_frame_fail(f, i, s, &err);
  }
}

/* weir_run_ctx.hold: |self| is the run context. Looks at cancel and deadline
 * every millisecond. */
void weir_frame_hold(void *self, int64_t ns, bool spin) {
  const weir_exec_ctx *ctx = self;
  const weir_clock *clock = ctx->frame->program->env->clock;
  const int64_t slice_ns = 1000000;
  atomic_uint never = 0; /* a word that is never woken */
  int64_t until = clock->now_ns(clock->self) + ns;
  for (;;) {
    int64_t left = until - clock->now_ns(clock->self);
    if (left <= 0 || weir_frame_check_stop(ctx->frame) != WEIR_OK) return;
    if (spin) {
      for (int i = 0; i < 100; i++) weir_cpu_relax();
      continue;
    }
    weir_futex_wait(&never, 0, left < slice_ns ? left : slice_ns);
  }
}
