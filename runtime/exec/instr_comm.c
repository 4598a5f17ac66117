/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/frame.h"
#include "runtime/exec/futex.h"

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

static void start(const comm_state *c, uint64_t step, void *const *io,
                  weir_collective *part, weir_channel_done *done) {
  const weir_channel_vtable *vt = c->channel->vt;
  if (c->kind == WEIR_INSTR_SEND) {
    vt->send(c->channel, c->edge, step, io[0], c->bytes, done);
  } else if (c->kind == WEIR_INSTR_RECV) {
    vt->recv(c->channel, c->edge, step, io[0], c->bytes, done);
  } else {
    *part = c->part;
    part->src = io[0];
    part->dst = io[1];
    vt->collective(c->channel, step, part, done);
  }
}

static void task_done(void *self, weir_status status, const weir_error *err) {
  weir_frame_task *t = self;
  weir_frame *f = t->frame;
  if (status != WEIR_OK) {
    weir_error why = WEIR_ERROR_INIT;
    if (err != NULL) why = *err;
    weir_frame_fail(f, f->program->tasks[t->index].first, status, &why);
  }
  weir_frame_task_end(t);
}

void weir_comm_start(weir_frame_task *t, uint64_t step) {
  const weir_program *p = t->frame->program;
  const weir_code *code = &p->code[p->tasks[t->index].first];
  t->done = (weir_channel_done){.fn = task_done, .self = t};
  start(code->state, step, t->frame->table + code->io, &t->part, &t->done);
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
  if (err != NULL && s->err != NULL) *s->err = *err;
  atomic_store(&s->ended, 1);
  /* The word is on the sleeper's stack, which it leaves only after this. */
  weir_futex_wake(&s->ended, 1);
  atomic_store(&s->ended, 2);
}

static weir_status comm_run(const weir_args *args) {
  sleeper s = {.status = WEIR_OK, .err = args->err};
  weir_channel_done done = {.fn = sleeper_done, .self = &s};
  weir_collective part;
  start(args->state, args->ctx->step, args->io, &part, &done);
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
