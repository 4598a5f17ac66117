/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/mix.h"
#include "runtime/base/vec.h"
#include "runtime/dist/channel/arrive.h"
#include "runtime/dist/channel/ends.h"
#include "runtime/dist/channel/pump.h"
#include "runtime/net/wire.h"
#include "runtime/net/wire_error.h"

/* Register.program's graph is named by its graph_hash: the number from which
 * the dataflow is made. Its flags have the number of tasks. */

void fake_program_make(fake_program *p, uint64_t seed, uint32_t tasks) {
  uint64_t r = seed;
  *p = (fake_program){.tasks = tasks, .seed = seed};
  p->count = 2 + weir_mix_below(&r, FAKE_NODES - 2);
  p->writes = weir_mix_below(&r, 3) > 0;
  p->fail_ppm = weir_mix_below(&r, 3) == 0 ? 20000 : 0;
  for (uint32_t i = 0; i < p->count; i++) {
    p->nodes[i].task = weir_mix_below(&r, tasks);
    for (int k = 0; k < 2; k++)
      p->nodes[i].in[k] =
          i > 0 && weir_mix_below(&r, 5) > 0 ? (int)weir_mix_below(&r, i) : -1;
  }
}

bool fake_has_work(const fake_program *p, uint32_t task) {
  for (uint32_t i = 0; i < p->count; i++)
    if (p->nodes[i].task == task) return true;
  return false;
}

uint64_t fake_first_variable(uint32_t task) {
  return weir_mix(task + 77);
}

static bool node_fails(const fake_program *p, uint64_t step, uint32_t node) {
  return weir_mix(p->seed ^ weir_mix(step * 64 + node)) % 1000000 < p->fail_ppm;
}

static uint64_t node_value(uint32_t node, uint64_t step, uint64_t variable,
                           const uint64_t *in, const int *from) {
  uint64_t v = weir_mix(weir_mix(node + 1) ^ step);
  v = weir_mix(v ^ variable);
  for (int k = 0; k < 2; k++)
    if (from[k] >= 0) v = weir_mix(v * 3 + in[k]);
  return v;
}

static uint64_t next_variable(uint64_t variable, uint64_t value) {
  return weir_mix(variable + 5 * value);
}

bool fake_expect(const fake_program *p, uint64_t step,
                 const uint64_t *variables, uint64_t *out_value,
                 uint64_t *new_variables, uint32_t *out_node) {
  uint64_t values[FAKE_NODES];
  memcpy(new_variables, variables, FAKE_TASKS * sizeof *variables);
  for (uint32_t i = 0; i < p->count; i++) {
    const fake_node *n = &p->nodes[i];
    uint64_t in[2] = {0, 0};
    if (node_fails(p, step, i)) {
      *out_node = i;
      return false;
    }
    for (int k = 0; k < 2; k++)
      if (n->in[k] >= 0) in[k] = values[n->in[k]];
    values[i] = node_value(i, step, variables[n->task], in, n->in);
    if (p->writes)
      new_variables[n->task] = next_variable(new_variables[n->task], values[i]);
  }
  *out_value = values[p->count - 1];
  return true;
}

/* ---- The engine */

typedef enum node_state { NODE_WAITS, NODE_DONE, NODE_FAILED } node_state;

/* One end of an edge to or from another task. */
typedef struct fake_edge {
  weir_channel_done done;
  struct fake_step *step;
  uint32_t node; /* the reader */
  int k;
  bool under_way, arrived;
  node_state state;
  uint8_t *bytes;
  weir_error error;
} fake_edge;

typedef struct fake_step {
  weir_engine_event event; /* of its end */
  struct fake_engine *engine;
  uint32_t program;
  uint64_t step, random_step;
  node_state states[FAKE_NODES]; /* of own nodes */
  uint64_t values[FAKE_NODES];
  weir_error errors[FAKE_NODES];
  fake_edge edges[2 * FAKE_NODES]; /* by reader and input */
  uint32_t edges_under_way;
  bool ended, told, given_up, stuck;
  uint64_t variable; /* prepared */
  weir_engine_failure failures[FAKE_NODES];
  weir_engine_value fetch;
} fake_step;

typedef struct fake_made {
  uint32_t number;
  fake_program program;
} fake_made;

typedef struct fake_engine {
  weir_engine base;
  const weir_allocator *alloc;
  fake_calls calls;
  uint32_t plant, self, tasks;
  uint64_t epoch, variable;
  bool live, broken, pumps;
  weir_rendezvous *rendezvous;
  const weir_wire_out *out;
  WEIR_VEC(fake_made) programs;
  WEIR_VEC(fake_step *) steps;
} fake_engine;

/* Every third edge carries a large value. */
static size_t edge_bytes(const fake_program *p, uint32_t reader, int k) {
  uint64_t r = weir_mix(p->seed + reader * 2 + (uint32_t)k);
  return r % 3 == 0 ? 9000 + r % 30000 * 8 / 8 : 8;
}

static void pump(fake_engine *e) {
  if (e->pumps || e->rendezvous == NULL) return;
  e->pumps = true;
  do {
    weir_rendezvous_flush(e->rendezvous);
    weir_rendezvous_pump(e->rendezvous, e->out);
  } while (weir_rendezvous_collects(e->rendezvous));
  e->pumps = false;
}

static void free_event(weir_engine_event *event) {
  free(event);
}

static weir_engine_event *new_event(weir_engine_event_kind kind) {
  weir_engine_event *e = calloc(1, sizeof *e);
  e->kind = kind;
  e->release = free_event;
  e->error = (weir_error)WEIR_ERROR_INIT;
  return e;
}

static fake_program *program_of(fake_engine *e, uint32_t number) {
  for (size_t i = 0; i < e->programs.count; i++)
    if (e->programs.items[i].number == number)
      return &e->programs.items[i].program;
  return NULL;
}

static fake_step *step_of(fake_engine *e, uint64_t step) {
  for (size_t i = 0; i < e->steps.count; i++)
    if (e->steps.items[i]->step == step) return e->steps.items[i];
  return NULL;
}

static void forget_step(fake_engine *e, fake_step *step) {
  for (size_t i = 0; i < e->steps.count; i++)
    if (e->steps.items[i] == step)
      e->steps.items[i] = e->steps.items[--e->steps.count];
  for (size_t i = 0; i < 2 * FAKE_NODES; i++) free(step->edges[i].bytes);
  free(step);
}

static void release(weir_engine *engine) {
  fake_engine *e = (fake_engine *)engine;
  weir_error why = WEIR_ERROR_INIT;
  weir_fail(&why, WEIR_W7027, NULL, "the process ends");
  e->live = false;
  if (e->rendezvous != NULL) {
    weir_rendezvous_abort(e->rendezvous, &why);
    pump(e);
    weir_rendezvous_release(e->rendezvous);
  }
  while (e->steps.count > 0) forget_step(e, e->steps.items[0]);
  weir_vec_free(e->alloc, &e->steps);
  weir_vec_free(e->alloc, &e->programs);
  free(e);
}

static weir_status begin(weir_engine *engine, const weir_engine_session *s,
                         weir_error *err) {
  fake_engine *e = (fake_engine *)engine;
  e->epoch = s->epoch;
  e->self = s->self;
  e->tasks = s->task_count;
  e->out = s->out;
  e->variable = fake_first_variable(s->self);
  weir_rendezvous_options options = {.epoch = s->epoch,
                                     .tasks = s->task_count,
                                     .chunk = 4096,
                                     .credit = 20000};
  if (e->rendezvous == NULL)
    WEIR_TRY(weir_rendezvous_create(e->alloc, &options, &e->rendezvous, err));
  e->live = true;
  e->broken = false;
  return WEIR_OK;
}

static void end(weir_engine *engine) {
  fake_engine *e = (fake_engine *)engine;
  weir_error why = WEIR_ERROR_INIT;
  weir_fail(&why, WEIR_W7027, NULL, "the session is over");
  if (!e->broken && e->steps.count == 0 &&
      !weir_rendezvous_is_empty(e->rendezvous))
    e->calls.left(e->calls.self);
  e->live = false;
  weir_rendezvous_abort(e->rendezvous, &why);
  pump(e);
  e->programs.count = 0;
  e->calls.later(e->calls.self, new_event(WEIR_ENGINE_ENDED));
}

bool fake_engine_may_end(weir_engine *engine) {
  fake_engine *e = (fake_engine *)engine;
  pump(e);
  if (!weir_rendezvous_is_empty(e->rendezvous)) return false;
  while (e->steps.count > 0) forget_step(e, e->steps.items[0]);
  if ((e->plant & FAKE_PLANT_OLD_EPOCH) != 0) return true;
  weir_rendezvous_release(e->rendezvous);
  e->rendezvous = NULL;
  return true;
}

/* ---- Steps */

static void advance(fake_engine *e, fake_step *step);

static void edge_done(void *self, weir_status status, const weir_error *err) {
  fake_edge *edge = self;
  fake_step *step = edge->step;
  edge->under_way = false;
  step->edges_under_way--;
  if (status != WEIR_OK) weir_error_copy(&edge->error, err);
  edge->state = status == WEIR_OK ? NODE_DONE : NODE_FAILED;
  advance(step->engine, step);
}

static fake_edge *open_edge(fake_step *step, uint32_t reader, int k,
                            size_t bytes) {
  fake_edge *edge = &step->edges[reader * 2 + (uint32_t)k];
  edge->done = (weir_channel_done){.fn = edge_done, .self = edge};
  edge->step = step;
  edge->bytes = calloc(1, bytes);
  edge->under_way = true;
  step->edges_under_way++;
  return edge;
}

static weir_slot slot_of(const fake_step *step, uint32_t reader, int k) {
  return (weir_slot){WEIR__V1__VALUE_KIND__EDGE, reader * 2 + (uint32_t)k,
                     step->step};
}

static void send_value(fake_engine *e, fake_step *step, uint32_t node,
                       uint32_t reader, int k) {
  const fake_program *p = program_of(e, step->program);
  uint32_t to = p->nodes[reader].task;
  weir_slot slot = slot_of(step, reader, k);
  if (step->states[node] == NODE_FAILED) {
    weir_rendezvous_send_error(e->rendezvous, to, &slot, &step->errors[node]);
    return;
  }
  size_t bytes = edge_bytes(p, reader, k);
  fake_edge *edge = open_edge(step, reader, k, bytes);
  for (size_t i = 0; i + 8 <= bytes; i += 8)
    memcpy(edge->bytes + i, &step->values[node], 8);
  weir_rendezvous_send(e->rendezvous, to, &slot,
                       (weir_bytes){edge->bytes, bytes}, &edge->done);
}

static void node_ended(fake_engine *e, fake_step *step, uint32_t node) {
  const fake_program *p = program_of(e, step->program);
  for (uint32_t i = node + 1; i < p->count; i++)
    for (int k = 0; k < 2; k++)
      if (p->nodes[i].in[k] == (int)node && p->nodes[i].task != e->self)
        send_value(e, step, node, i, k);
}

/* Asks for all values of other tasks. */
static void receive_all(fake_engine *e, fake_step *step) {
  const fake_program *p = program_of(e, step->program);
  for (uint32_t i = 0; i < p->count; i++)
    for (int k = 0; k < 2; k++) {
      int from = p->nodes[i].in[k];
      if (p->nodes[i].task != e->self || from < 0 ||
          p->nodes[from].task == e->self)
        continue;
      size_t bytes = edge_bytes(p, i, k);
      weir_slot slot = slot_of(step, i, k);
      fake_edge *edge = open_edge(step, i, k, bytes);
      weir_rendezvous_recv(e->rendezvous, p->nodes[from].task, &slot,
                           edge->bytes, bytes, &edge->done);
    }
}

/* The input of |node| by |k|: from here, or from another task. */
static node_state input(fake_engine *e, fake_step *step, uint32_t node, int k,
                        uint64_t *value, weir_error *why) {
  const fake_program *p = program_of(e, step->program);
  int from = p->nodes[node].in[k];
  if (from < 0) return NODE_DONE;
  if (p->nodes[from].task == e->self) {
    *value = step->values[from];
    if (step->states[from] == NODE_FAILED)
      weir_error_copy(why, &step->errors[from]);
    return step->states[from];
  }
  const fake_edge *edge = &step->edges[node * 2 + (uint32_t)k];
  if (edge->under_way) return NODE_WAITS;
  if (edge->state == NODE_FAILED) {
    weir_error_copy(why, &edge->error);
    return NODE_FAILED;
  }
  size_t last = edge_bytes(p, node, k) / 8 * 8 - 8;
  memcpy(value, edge->bytes + last, 8);
  return NODE_DONE;
}

static void try_node(fake_engine *e, fake_step *step, uint32_t node) {
  const fake_program *p = program_of(e, step->program);
  uint64_t in[2] = {0, 0};
  weir_error why = WEIR_ERROR_INIT;
  node_state state = NODE_DONE;
  for (int k = 0; k < 2; k++) {
    node_state s = input(e, step, node, k, &in[k], &why);
    if (s == NODE_WAITS) return;
    if (s == NODE_FAILED) state = NODE_FAILED;
  }
  if (state == NODE_DONE && node_fails(p, step->random_step, node)) {
    state = NODE_FAILED;
    weir_fail(&why, WEIR_W5004, NULL, "node %u fails", node);
  }
  step->states[node] = state;
  if (state == NODE_FAILED) weir_error_copy(&step->errors[node], &why);
  step->values[node] =
      node_value(node, step->random_step, e->variable, in, p->nodes[node].in);
  node_ended(e, step, node);
}

static void step_event_read(weir_engine_event *event) {
  fake_step *step = (fake_step *)event;
  step->told = true;
  if (step->given_up || !step->event.prepared || !step->engine->live)
    forget_step(step->engine, step);
}

static void end_step(fake_engine *e, fake_step *step) {
  const fake_program *p = program_of(e, step->program);
  weir_engine_event *event = &step->event;
  step->ended = true;
  step->variable = e->variable;
  for (uint32_t i = 0; i < p->count; i++) {
    if (p->nodes[i].task != e->self) continue;
    if (step->states[i] == NODE_FAILED)
      step->failures[event->failure_count++] =
          (weir_engine_failure){i, &step->errors[i]};
    step->variable = next_variable(step->variable, step->values[i]);
  }
  event->kind = WEIR_ENGINE_STEP;
  event->release = step_event_read;
  event->step = step->step;
  event->failures = step->failures;
  event->prepared = p->writes && event->failure_count == 0 && !step->given_up;
  if (p->nodes[p->count - 1].task == e->self && event->failure_count == 0) {
    step->fetch = (weir_engine_value){0, &step->values[p->count - 1], 8};
    event->fetches = &step->fetch;
    event->fetch_count = 1;
  }
  e->calls.later(e->calls.self, event);
}

static void advance(fake_engine *e, fake_step *step) {
  const fake_program *p = program_of(e, step->program);
  bool all = true;
  if (step->ended || step->stuck || !e->live) return;
  for (uint32_t i = 0; i < p->count; i++) {
    if (p->nodes[i].task != e->self) continue;
    if (step->states[i] == NODE_WAITS) try_node(e, step, i);
    all = all && step->states[i] != NODE_WAITS;
  }
  if (all && step->edges_under_way == 0) end_step(e, step);
}

static weir_status control(weir_engine *engine, uint32_t peer,
                           const Weir__V1__Control *m, weir_error *err) {
  fake_engine *e = (fake_engine *)engine;
  weir_status s = weir_rendezvous_control(e->rendezvous, peer, m, err);
  pump(e);
  return s;
}

weir_status fake_engine_bulk(weir_engine *engine, uint32_t peer,
                             const weir_net_frame *frame, weir_error *err) {
  fake_engine *e = (fake_engine *)engine;
  weir_bulk bulk;
  weir_bulk_payload payload;
  weir_rendezvous_place place;
  if (!e->live) return WEIR_OK;
  WEIR_TRY(weir_bulk_read(frame, &bulk, &payload, err));
  WEIR_TRY(weir_rendezvous_bulk_begin(e->rendezvous, peer, &bulk, &place, err));
  weir_rendezvous_bulk_copy(&place, payload);
  weir_rendezvous_bulk_end(e->rendezvous, &place);
  pump(e);
  return WEIR_OK;
}

static void lost(weir_engine *engine, uint32_t peer, const weir_error *why) {
  fake_engine *e = (fake_engine *)engine;
  e->broken = true;
  weir_rendezvous_lost(e->rendezvous, peer, why);
  pump(e);
}

static weir_status add(weir_engine *engine, const Weir__V1__Register *request,
                       weir_error *err) {
  fake_engine *e = (fake_engine *)engine;
  fake_made made = {.number = request->program};
  fake_program_make(&made.program, request->graph_hash, request->flags);
  if (!weir_vec_push(e->alloc, &e->programs, made))
    return weir_fail_memory(err, sizeof made);
  struct added {
    weir_engine_event event;
    uint32_t peers[FAKE_TASKS];
  } *a = calloc(1, sizeof *a);
  a->event.kind = WEIR_ENGINE_ADDED;
  a->event.release = free_event;
  a->event.error = (weir_error)WEIR_ERROR_INIT;
  a->event.program = made.number;
  a->event.writes = made.program.writes;
  a->event.graph_hash = request->graph_hash;
  const fake_program *p = &made.program;
  bool with[FAKE_TASKS] = {false};
  for (uint32_t i = 0; i < p->count; i++)
    for (int k = 0; k < 2; k++) {
      if (p->nodes[i].in[k] < 0) continue;
      uint32_t from = p->nodes[p->nodes[i].in[k]].task, to = p->nodes[i].task;
      if (from == to) continue;
      if (from == e->self) with[to] = true;
      if (to == e->self) with[from] = true;
    }
  for (uint32_t i = 0; i < e->tasks; i++)
    if (with[i]) a->peers[a->event.peer_count++] = i;
  a->event.peers = a->peers;
  e->calls.later(e->calls.self, &a->event);
  return WEIR_OK;
}

static void remove_program(weir_engine *engine, uint32_t program) {
  fake_engine *e = (fake_engine *)engine;
  for (size_t i = 0; i < e->programs.count; i++)
    if (e->programs.items[i].number == program)
      e->programs.items[i] = e->programs.items[--e->programs.count];
}

static weir_status start(weir_engine *engine, const weir_engine_step *s,
                         weir_error *err) {
  fake_engine *e = (fake_engine *)engine;
  fake_step *step = calloc(1, sizeof *step);
  step->engine = e;
  step->program = s->program;
  step->step = s->step;
  step->random_step = s->random_step;
  if (!weir_vec_push(e->alloc, &e->steps, step)) {
    free(step);
    return weir_fail_memory(err, sizeof *step);
  }
  step->stuck = e->calls.stuck(e->calls.self, s->step);
  receive_all(e, step);
  advance(e, step);
  pump(e);
  return WEIR_OK;
}

static void commit(weir_engine *engine, uint64_t number) {
  fake_engine *e = (fake_engine *)engine;
  fake_step *step = step_of(e, number);
  e->calls.committed(e->calls.self, e->epoch, number, true);
  if (step == NULL) return;
  e->variable = step->variable;
  forget_step(e, step);
}

static void abort_step(weir_engine *engine, uint64_t number,
                       const weir_error *why) {
  fake_engine *e = (fake_engine *)engine;
  fake_step *step = step_of(e, number);
  bool late = step == NULL || step->ended;
  if (!late || (e->plant & FAKE_PLANT_LATE) == 0)
    weir_rendezvous_drop(e->rendezvous, number, why);
  if (step != NULL && step->ended && step->told) {
    if (step->event.prepared)
      e->calls.committed(e->calls.self, e->epoch, number, false);
    forget_step(e, step);
  } else if (step != NULL) {
    step->given_up = true;
    step->stuck = false;
  }
  pump(e);
  step = step_of(e, number);
  if (step != NULL && !step->ended) advance(e, step);
}

static weir_status variables(weir_engine *engine, uint32_t program,
                             uint64_t request, const uint32_t *nodes,
                             size_t count, weir_error *err) {
  (void)program, (void)nodes, (void)count, (void)err;
  fake_engine *e = (fake_engine *)engine;
  weir_engine_event *event = new_event(WEIR_ENGINE_VARIABLES);
  event->request = request;
  e->calls.later(e->calls.self, event);
  return WEIR_OK;
}

static size_t pending(weir_engine *engine, weir_engine_wait *waits,
                      size_t capacity, uint32_t *out_running) {
  fake_engine *e = (fake_engine *)engine;
  weir_rendezvous_wait rows[64];
  size_t n = weir_rendezvous_pending(e->rendezvous, rows, 64);
  *out_running = 0;
  for (size_t i = 0; i < e->steps.count; i++)
    *out_running += e->steps.items[i]->stuck && !e->steps.items[i]->ended;
  if (n > 64) n = 64;
  if (n > capacity) n = capacity;
  for (size_t i = 0; i < n; i++)
    waits[i] = (weir_engine_wait){.kind = rows[i].slot.kind,
                                  .id = rows[i].slot.id,
                                  .step = rows[i].slot.step,
                                  .peer = rows[i].peer,
                                  .bytes = rows[i].bytes,
                                  .total_bytes = rows[i].total};
  return n;
}

static const weir_engine_vtable kFake = {.release = release,
                                         .begin = begin,
                                         .end = end,
                                         .control = control,
                                         .lost = lost,
                                         .add = add,
                                         .remove = remove_program,
                                         .start = start,
                                         .commit = commit,
                                         .abort = abort_step,
                                         .get = variables,
                                         .set = variables,
                                         .pending = pending};

weir_status fake_engine_create(const weir_allocator *alloc,
                               const fake_calls *calls, uint32_t plant,
                               weir_engine **out_engine) {
  fake_engine *e = calloc(1, sizeof *e);
  e->base.vt = &kFake;
  e->alloc = alloc;
  e->calls = *calls;
  e->plant = plant;
  *out_engine = &e->base;
  return WEIR_OK;
}

void fake_engine_pump(weir_engine *engine) {
  pump((fake_engine *)engine);
}

size_t fake_engine_left(const weir_engine *engine) {
  const fake_engine *e = (const fake_engine *)engine;
  return e->steps.count + e->programs.count + (e->rendezvous != NULL);
}
