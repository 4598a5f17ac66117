/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/program/instr_comm.h"

#include "runtime/exec/futex.h"
#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/run/frame.h"
#include "runtime/exec/run/run.h"
#include "runtime/exec/run/run_slow.h"

/* SEND, RECV and COLLECTIVE. At the top of a program each is a task that ends
 * by the channel's callback, so no thread waits for a peer; within a nested
 * body its thread sleeps until the call has ended. */

typedef struct comm_state {
  weir_instr_kind kind;
  weir_channel *channel;
  uint32_t edge;
  size_t bytes;
  weir_collective part;
} comm_state;

uint32_t weir_instr_comm_group(const weir_instr_spec *spec) {
  if (spec->kind != WEIR_INSTR_COLLECTIVE) return WEIR_NO_INDEX;
  return ((const comm_state *)spec->state)->part.group;
}

static weir_channel *channel_of(const comm_state *c, const weir_frame *f) {
  return c->channel != NULL ? c->channel : f->head->channel;
}

static void start(const comm_state *c, weir_channel *channel, uint64_t step,
                  void *const *io, weir_collective *part,
                  weir_channel_done *done) {
  const weir_channel_vtable *vt = channel->vt;
  void *data = c->bytes > 0 ? io[0] : NULL; /* a token has no operand */
  if (c->kind == WEIR_INSTR_SEND) {
    vt->send(channel, c->edge, step, data, c->bytes, done);
  } else if (c->kind == WEIR_INSTR_RECV) {
    vt->recv(channel, c->edge, step, data, c->bytes, done);
  } else {
    *part = c->part;
    part->src = io[0];
    part->dst = io[1];
    vt->collective(channel, step, part, done);
  }
}

static void task_done(void *self, weir_status status, const weir_error *err) {
  weir_frame_task *t = self;
  weir_frame *f = t->frame;
  if (status != WEIR_OK) {
    weir_error why = WEIR_ERROR_INIT;
    if (err != NULL) why = *err;
    weir_error told = why; /* weir_frame_fail clears its own */
    weir_frame_fail(f, f->program->tasks[t->index].first, status, &why);
    const comm_state *c =
        f->program->code[f->program->tasks[t->index].first].state;
    /* A receive has been told by its sender, who waits for nothing more. */
    if (c->kind != WEIR_INSTR_RECV) weir_comm_refuse(t, f->options.step, &told);
  } else if (f->options.trace != NULL) {
    const weir_clock *clock = f->program->env->clock;
    weir_frame_trace(f, f->program->tasks[t->index].first, t->start_ns,
                     clock->now_ns(clock->self), 0);
  }
  weir_frame_task_end(t);
}

void weir_comm_start(weir_frame_task *t, uint64_t step) {
  weir_frame *f = t->frame;
  const weir_program *p = f->program;
  const weir_code *code = &p->code[p->tasks[t->index].first];
  const comm_state *c = code->state;
  const weir_clock *clock = p->env->clock;
  t->done = (weir_channel_done){.fn = task_done, .self = t};
  if (f->options.trace != NULL) t->start_ns = clock->now_ns(clock->self);
  start(c, channel_of(c, f), step, f->table + code->io, &t->part, &t->done);
}

void weir_comm_refuse(weir_frame_task *t, uint64_t step,
                      const weir_error *why) {
  weir_frame *f = t->frame;
  const weir_program *p = f->program;
  const comm_state *c = p->code[p->tasks[t->index].first].state;
  weir_channel *channel = channel_of(c, f);
  if (c->kind == WEIR_INSTR_SEND)
    channel->vt->send_error(channel, c->edge, step, why);
  else /* its peers must not wait for it */
    channel->vt->abort(channel, why);
}

/* ---- Within a nested body */

typedef struct sleeper {
  atomic_uint ended;
  weir_status status;
  weir_error *err;
} sleeper;

static void sleeper_done(void *self, weir_status status,
                         const weir_error *err) {
  sleeper *s = self;
  s->status = status;
  if (err != NULL) weir_error_copy(s->err, err);
  atomic_store(&s->ended, 1);
  /* The word is on the sleeper's stack, which is left only at 2: so the wake-up
   * never touches a dead word. The sleeper spins from 1 to 2. */
  weir_futex_wake(&s->ended, 1);
  atomic_store(&s->ended, 2);
}

static weir_status comm_run(const weir_args *args) {
  sleeper s = {.status = WEIR_OK, .err = args->err};
  weir_channel_done done = {.fn = sleeper_done, .self = &s};
  weir_collective part;
  weir_channel *channel = channel_of(args->state, weir_exec_of(args)->frame);
  start(args->state, channel, args->ctx->step, args->io, &part, &done);
  unsigned seen;
  while ((seen = atomic_load(&s.ended)) != 2) {
    if (seen == 0) weir_futex_wait(&s.ended, 0, -1);
    weir_cpu_relax();
  }
  return s.status;
}

static weir_status comm_new(weir_program_builder *builder,
                            const comm_state *state, weir_instr_spec *spec) {
  comm_state *kept =
      weir_arena_array(weir_program_builder_arena(builder), 1, sizeof *kept);
  if (kept == NULL) {
    builder->no_memory = true;
    return WEIR_RESOURCE_EXHAUSTED;
  }
  *kept = *state;
  if (state->channel == NULL) builder->program->channel = true;
  spec->kind = state->kind;
  spec->state = kept;
  spec->run = comm_run;
  spec->async = true;
  spec->cost_ns = 20000;
  spec->bytes = (int64_t)state->bytes;
  return WEIR_OK;
}

weir_status weir_instr_send(weir_program_builder *builder,
                            weir_channel *channel, uint32_t edge, size_t bytes,
                            weir_instr_spec *spec) {
  comm_state state = {.kind = WEIR_INSTR_SEND,
                      .channel = channel,
                      .edge = edge,
                      .bytes = bytes};
  return comm_new(builder, &state, spec);
}

weir_status weir_instr_recv(weir_program_builder *builder,
                            weir_channel *channel, uint32_t edge, size_t bytes,
                            weir_instr_spec *spec) {
  comm_state state = {.kind = WEIR_INSTR_RECV,
                      .channel = channel,
                      .edge = edge,
                      .bytes = bytes};
  return comm_new(builder, &state, spec);
}

weir_status weir_instr_collective(weir_program_builder *builder,
                                  weir_channel *channel,
                                  const weir_collective *part,
                                  weir_instr_spec *spec) {
  comm_state state = {
      .kind = WEIR_INSTR_COLLECTIVE, .channel = channel, .part = *part};
  return comm_new(builder, &state, spec);
}
