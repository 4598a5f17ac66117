/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/program/instr_comm.h"

#include <assert.h>

#include "runtime/exec/futex.h"
#include "runtime/exec/gpu/gpu_peer.h"
#include "runtime/exec/pool_grow.h"
#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/run/frame.h"
#include "runtime/exec/run/run.h"
#include "runtime/exec/run/run_slow.h"
#include "runtime/exec/run/run_tasks.h"

/* SEND, RECV and COLLECTIVE. At the top of a program each is a task that ends
 * by the channel's callback, so no thread waits for a peer; within a nested
 * body its thread sleeps until the call has ended, and gives its slot to
 * another thread meanwhile.
 *
 * Between GPUs the channel carries the sender's offer, and the two tasks end
 * with the copy that follows (gpu_peer.h). */

typedef struct comm_state {
  weir_instr_kind kind;
  bool between_tasks;
  bool direct; /* from GPU to GPU */
  weir_channel *channel;
  uint32_t edge;
  size_t bytes;
  weir_collective part;
  const weir_take *take; /* RECV: what is done with the bytes; NULL: kept */
} comm_state;

uint32_t weir_instr_comm_group(const weir_instr_spec *spec) {
  if (spec->kind != WEIR_INSTR_COLLECTIVE) return WEIR_NO_INDEX;
  return ((const comm_state *)spec->state)->part.group;
}

/* Where a call goes, and the number of its step there. */
typedef struct route {
  weir_channel *channel;
  uint64_t step;
} route;

static const comm_state *state_of(const weir_frame_task *t) {
  const weir_program *p = t->frame->program;
  return p->code[p->tasks[t->index].first].state;
}

static route route_of(const comm_state *c, const weir_frame *f,
                      uint64_t turns) {
  const weir_frame *head = f->head;
  route r = {head->channel, head->channel_runs};
  if (c->between_tasks || c->channel != NULL)
    r = (route){head->outer, head->options.channel_step};
  if (c->channel != NULL) r.channel = c->channel;
  if (turns != 0) r.step = weir_channel_turn(r.step, turns);
  return r;
}

static void take_piece(void *self, size_t offset, const void *data,
                       size_t size) {
  const weir_frame_task *t = self;
  const weir_program *p = t->frame->program;
  const weir_code *code = &p->code[p->tasks[t->index].first];
  const comm_state *c = code->state;
  weir_take_piece(c->take, t->frame->table + code->io, offset, data, size);
}

static void start(const comm_state *c, route to, void *const *io,
                  weir_collective *part, weir_channel_done *done) {
  const weir_channel_vtable *vt = to.channel->vt;
  void *data = c->bytes > 0 ? io[0] : NULL; /* a token has no operand */
  if (c->kind == WEIR_INSTR_SEND) {
    vt->send(to.channel, c->edge, to.step, data, c->bytes, done);
  } else if (c->kind == WEIR_INSTR_RECV) {
    vt->recv(to.channel, c->edge, to.step, data, c->bytes, done);
  } else {
    *part = c->part;
    part->src = io[0];
    part->dst = io[1];
    vt->collective(to.channel, to.step, part, done);
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
    const comm_state *c = state_of(t);
    /* A receive has been told by its sender, who waits for nothing more. */
    if (c->kind != WEIR_INSTR_RECV) weir_comm_refuse(t, &told);
  } else if (f->options.trace != NULL) {
    const weir_clock *clock = f->program->env->clock;
    weir_frame_trace(f, f->program->tasks[t->index].first, t->start_ns,
                     clock->now_ns(clock->self), 0);
  }
  weir_frame_task_end(t);
}

/* ---- Between GPUs */

static void direct_ended(weir_frame_task *t) {
  task_done(t, WEIR_OK, NULL);
}

static void direct_sent(void *self, weir_status status, const weir_error *err) {
  if (status == WEIR_OK)
    weir_gpu_peer_half(self);
  else
    task_done(self, status, err);
}

static void direct_received(void *self, weir_status status,
                            const weir_error *err) {
  weir_frame_task *t = self;
  const weir_frame *f = t->frame;
  const weir_code *code = &f->program->code[f->program->tasks[t->index].first];
  if (status == WEIR_OK)
    weir_gpu_peer_copy(t, f->table[code->io], state_of(t)->bytes);
  else
    task_done(self, status, err);
}

/* No bytes but the offer's go over the channel. */
static void start_direct(weir_frame_task *t, route to, void *value) {
  const comm_state *c = state_of(t);
  const weir_channel_vtable *vt = to.channel->vt;
  if (c->kind == WEIR_INSTR_SEND) {
    t->done.fn = direct_sent;
    const weir_gpu_offer *offer = weir_gpu_peer_offer(t, value, direct_ended);
    vt->send(to.channel, c->edge, to.step, offer, sizeof *offer, &t->done);
  } else {
    t->done.fn = direct_received;
    weir_gpu_offer *offer = weir_gpu_peer_offered(t);
    vt->recv(to.channel, c->edge, to.step, offer, sizeof *offer, &t->done);
  }
}

/* ---- */

void weir_comm_start(weir_frame_task *t) {
  weir_frame *f = t->frame;
  const weir_program *p = f->program;
  const weir_code *code = &p->code[p->tasks[t->index].first];
  const comm_state *c = code->state;
  const weir_clock *clock = p->env->clock;
  t->done = (weir_channel_done){.fn = task_done, .self = t};
  if (f->options.trace != NULL) t->start_ns = clock->now_ns(clock->self);
  route to = route_of(c, f, 0);
  if (c->direct) {
    start_direct(t, to, f->table[code->io]);
    return;
  }
  if (c->take == NULL) {
    start(c, to, f->table + code->io, &t->part, &t->done);
    return;
  }
  t->sink = (weir_channel_sink){take_piece, t};
  to.channel->vt->recv_pieces(to.channel, c->edge, to.step, c->bytes, &t->sink,
                              &t->done);
}

void weir_comm_refuse(weir_frame_task *t, const weir_error *why) {
  weir_frame *f = t->frame;
  const comm_state *c = state_of(t);
  route to = route_of(c, f, 0);
  if (c->kind == WEIR_INSTR_SEND)
    to.channel->vt->send_error(to.channel, c->edge, to.step, why);
  else /* its peers must not wait for it */
    to.channel->vt->drop(to.channel, to.step, why);
}

/* ---- Within a nested body */

typedef struct sleeper {
  weir_nap nap;
  weir_status status;
  weir_error *err;
} sleeper;

static void sleeper_done(void *self, weir_status status,
                         const weir_error *err) {
  sleeper *s = self;
  s->status = status;
  if (err != NULL) weir_error_copy(s->err, err);
  weir_nap_end(&s->nap);
}

/* Whether the run has to stop: by itself, or told by weir_frame_stop. */
static bool must_stop(weir_frame *f) {
  int told = atomic_load(&f->head->stopped);
  if (told != WEIR_OK) atomic_store(&f->stopped, told);
  return weir_frame_check_stop(f) != WEIR_OK;
}

/* Sleeps until the call has ended. A run that must stop forgets the call's
 * step, which ends the call. */
static void sleep_on(sleeper *s, weir_frame *f, route to) {
  bool given_up = false;
  while (!weir_nap_sleep(&s->nap, WEIR_WATCH_NS)) {
    if (given_up || !must_stop(f)) continue;
    weir_error why = WEIR_ERROR_INIT;
    weir_frame_stop_error((weir_status)atomic_load(&f->stopped), &why);
    to.channel->vt->drop(to.channel, to.step, &why);
    given_up = true;
  }
}

static weir_status comm_run(const weir_args *args) {
  const weir_exec_ctx *ctx = weir_exec_of(args);
  sleeper s = {.status = WEIR_OK, .err = args->err};
  weir_channel_done done = {.fn = sleeper_done, .self = &s};
  weir_collective part;
  weir_error why = WEIR_ERROR_INIT;
  route to = route_of(args->state, ctx->frame, ctx->turns);
  start(args->state, to, args->io, &part, &done);
  if (weir_nap_is_over(&s.nap)) return s.status;
  bool gave = weir_worker_sleep(ctx->worker, &why) == WEIR_OK;
  /* Without a stand-in the peer might never run: nobody waits for it then. */
  if (!gave) to.channel->vt->drop(to.channel, to.step, &why);
  sleep_on(&s, ctx->frame, to);
  if (gave) weir_worker_rise(ctx->worker);
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
  builder->program->comm = true;
  if (state->channel == NULL && state->between_tasks)
    builder->program->outer = true;
  else if (state->channel == NULL)
    builder->program->channel = true;
  spec->kind = state->kind;
  spec->state = kept;
  spec->run = comm_run;
  spec->async = true;
  spec->cost_ns = 20000;
  spec->bytes = (int64_t)state->bytes;
  return WEIR_OK;
}

weir_status weir_instr_send(weir_program_builder *builder,
                            weir_channel *channel, bool between_tasks,
                            uint32_t edge, size_t bytes,
                            weir_instr_spec *spec) {
  comm_state state = {.kind = WEIR_INSTR_SEND,
                      .between_tasks = between_tasks,
                      .channel = channel,
                      .edge = edge,
                      .bytes = bytes};
  return comm_new(builder, &state, spec);
}

weir_status weir_instr_recv(weir_program_builder *builder,
                            weir_channel *channel, bool between_tasks,
                            uint32_t edge, size_t bytes,
                            weir_instr_spec *spec) {
  comm_state state = {.kind = WEIR_INSTR_RECV,
                      .between_tasks = between_tasks,
                      .channel = channel,
                      .edge = edge,
                      .bytes = bytes};
  return comm_new(builder, &state, spec);
}

void weir_instr_recv_pieces(weir_instr_spec *spec, const weir_take *take) {
  comm_state *c = (comm_state *)(uintptr_t)spec->state;
  assert(c->kind == WEIR_INSTR_RECV && c->between_tasks);
  c->take = take;
}

void weir_instr_direct(weir_instr_spec *spec) {
  comm_state *c = (comm_state *)(uintptr_t)spec->state;
  assert(c->kind != WEIR_INSTR_COLLECTIVE && c->bytes > 0);
  assert(c->channel == NULL && !c->between_tasks);
  c->direct = true;
  if (c->kind == WEIR_INSTR_RECV) spec->kernel = "copy.gpu_to_gpu";
}

bool weir_instr_comm_arrives(const weir_instr_spec *spec) {
  return spec->kind == WEIR_INSTR_RECV &&
         ((const comm_state *)spec->state)->direct;
}

weir_status weir_instr_collective(weir_program_builder *builder,
                                  weir_channel *channel, bool between_tasks,
                                  const weir_collective *part,
                                  weir_instr_spec *spec) {
  comm_state state = {.kind = WEIR_INSTR_COLLECTIVE,
                      .between_tasks = between_tasks,
                      .channel = channel,
                      .part = *part};
  return comm_new(builder, &state, spec);
}
