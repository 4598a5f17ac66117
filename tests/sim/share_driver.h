/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_SHARE_DRIVER_H_
#define TESTS_SIM_SHARE_DRIVER_H_

/* A driver's user, a part of share.c: registers in the first turn, then adds
 * and reads, each in a turn of its own. */

enum { KEEPER = TASKS }; /* begins first and ends last */

static void on_started(void *self, const weir_error *err) {
  process *p = self;
  say(p->w, "%u: started %s", p->id, err != NULL ? err->message : "well");
  if (err == NULL) p->phase = MAKES;
}

static void on_registered(void *self, const weir_driver_program *program,
                          const weir_error *err) {
  process *p = self;
  (void)program;
  p->registered++;
  if (err == NULL) return;
  say(p->w, "%u: not registered: %s", p->id, err->message);
  if (p->id == KEEPER) wrong(p->w, "not registered: %s", err->message);
  p->failed = true;
  weir_driver_end(p->driver, false);
}

/* Adds that all tasks have confirmed. */
static uint64_t kept_adds(const process *p) {
  return weir_driver_kept(p->driver) >= p->last_add ? p->told : p->told - 1;
}

static void on_stepped(void *self, const weir_driver_result *result,
                       const weir_error *err) {
  process *p = self;
  world *w = p->w;
  uint64_t values[TASKS] = {0};
  p->under_way = false;
  if (err != NULL) {
    say(w, "%u: step failed: %s", p->id, err->message);
    p->failed = true;
    if (p->adds) p->doubt = true;
    return;
  }
  for (size_t i = 0; i < result->fetch_count; i++)
    memcpy(&values[result->fetches[i].place], result->fetches[i].data, 8);
  say(w, "%u: %s %" PRIu64, p->id, p->adds ? "adds to" : "reads", values[0]);
  if (result->fetch_count != TASKS || values[0] != values[1] ||
      values[1] != values[2])
    wrong(w, "driver %u reads %" PRIu64 ", %" PRIu64 ", %" PRIu64, p->id,
          values[0], values[1], values[2]);
  if (p->adds != result->committed) wrong(w, "an add is not committed");
  if (p->adds) {
    p->told++;
    p->last_add = result->step;
  }
  p->steps++;
  p->value = values[0];
  weir_driver_turn_end(p->driver, now_of(w), false);
  p->turn = NO_TURN;
  p->next_ns = now_of(w);
}

static void on_variables(void *self, uint64_t request, const weir_error *err) {
  (void)self, (void)request, (void)err;
}

static void on_over(void *self, const weir_error *err) {
  process *p = self;
  say(p->w, "%u: over %s", p->id, err != NULL ? err->message : "well");
  if (err != NULL && strcmp(err->id, "W7011") == 0)
    wrong(p->w, "the protocol is broken: %s", err->message);
  if (err == NULL && !p->failed && kept_adds(p) != p->told)
    wrong(p->w, "driver %u ended well and has lost a step", p->id);
  if (err != NULL) p->failed = true;
  p->phase = OVER;
}

static void on_place(void *self, uint32_t place, weir_peer *peer) {
  (void)self, (void)place, (void)peer;
}

static weir_status on_value(void *self, uint32_t place,
                            const Weir__V1__Control *m, weir_error *err) {
  (void)self, (void)place, (void)m;
  return weir_fail(err, WEIR_W7011, NULL, "a value");
}

static weir_status on_blob(void *self, uint32_t place, const uint8_t *name,
                           uint32_t number, weir_error *err) {
  (void)self, (void)place, (void)name, (void)number, (void)err;
  return WEIR_OK;
}

static void on_drop(void *self, uint64_t step, const weir_error *why) {
  (void)self, (void)step, (void)why;
}

static void on_replied(void *self, uint64_t request,
                       const struct Weir__V1__CheckpointReply *reply,
                       const weir_error *err) {
  (void)self, (void)request, (void)reply, (void)err;
}

static void on_turned(void *self, const weir_driver_turn *turn,
                      const weir_error *err) {
  process *p = self;
  say(p->w, "%u: turn %" PRIu64 " %s", p->id, turn->number,
      err != NULL   ? err->message
      : turn->fresh ? "is here, fresh"
                    : "is here");
  p->turn = err == NULL ? HAS_TURN : NO_TURN;
  p->fresh = turn->fresh;
}

static void driver_begin(process *p) {
  world *w = p->w;
  weir_error err = WEIR_ERROR_INIT;
  weir_driver_task tasks[TASKS];
  char addresses[TASKS][16];
  for (uint32_t i = 0; i < TASKS; i++) {
    snprintf(addresses[i], sizeof addresses[i], "sim:%u:1", i);
    tasks[i] = (weir_driver_task){"worker", i, addresses[i]};
  }
  weir_driver_options options = {.epoch = 1,
                                 .tasks = tasks,
                                 .task_count = TASKS,
                                 .step_ns = 8 * kSecond,
                                 .share = "numbers",
                                 .plant = w->plant ? 16 : 0};
  weir_driver_calls calls = {
      p,        on_started, on_registered, on_stepped, on_variables, on_over,
      on_place, on_value,   on_blob,       on_drop,    on_replied,   on_turned};
  if (weir_driver_create(w->env->alloc, p->link, now_of(w), &options, &calls,
                         &p->driver, &err) != WEIR_OK)
    wrong(w, "no driver: %s", err.message);
}

/* Counts the steps of a driver that has ended or died. */
static void driver_count(process *p) {
  world *w = p->w;
  uint64_t kept = p->told > 0 ? kept_adds(p) : 0;
  bool doubt = kept < p->told || p->doubt || (p->under_way && p->adds);
  w->kept += kept;
  w->doubts += doubt;
}

static void ask(process *p, bool writes) {
  weir_error err = WEIR_ERROR_INIT;
  uint64_t number;
  p->turn = TURN_ASKED;
  p->adds = writes;
  if (weir_driver_turn_ask(p->driver, now_of(p->w), 1, writes, &number, &err) !=
      WEIR_OK)
    p->turn = NO_TURN; /* the session has just failed */
}

static void make(process *p) {
  weir_error err = WEIR_ERROR_INIT;
  uint32_t places[TASKS] = {0, 1, 2};
  for (uint32_t i = 0; i < 2 && !p->made; i++) {
    Weir__V1__Register r = WEIR__V1__REGISTER__INIT;
    r.graph_hash = i == 0 ? ADDER_READS : ADDER_ADDS;
    if (p->fresh && i == 0) r.flags = WEIR_WIRE_REGISTER_FRESH;
    (void)weir_driver_register(p->driver, now_of(p->w), &r, places, TASKS,
                               &p->programs[i], &err);
  }
  if (!p->made) p->next_ns = now_of(p->w);
  p->made = true;
  if (p->registered < 2 || p->failed) return;
  p->next_ns = now_of(p->w);
  weir_driver_turn_end(p->driver, now_of(p->w), true);
  p->turn = NO_TURN;
  p->phase = STEPS_RUN;
}

static void run_step(process *p) {
  weir_error err = WEIR_ERROR_INIT;
  uint64_t number;
  weir_driver_step step = {.program = p->programs[p->adds]};
  p->under_way = true;
  p->next_ns = now_of(p->w);
  if (weir_driver_run(p->driver, now_of(p->w), &step, &number, &err) != WEIR_OK)
    p->under_way = false;
}

static bool others_are_over(const world *w) {
  for (uint32_t i = TASKS; i < PROCESSES; i++)
    if (i != KEEPER && (w->processes[i].alive ||
                        (w->lives > 0 && (w->finished >> i & 1) == 0)))
      return false;
  return true;
}

static void driver_go_on(process *p) {
  world *w = p->w;
  if (p->phase == STARTS || p->phase == OVER || p->failed) return;
  if (p->turn == TURN_ASKED || p->under_way) return;
  if (p->phase == MAKES) {
    if (p->turn == NO_TURN)
      ask(p, true);
    else
      make(p);
  } else if (p->turn == HAS_TURN) {
    run_step(p);
  } else if (p->steps < STEPS) {
    ask(p, p->steps % 2 == 0);
  } else if (p->id != KEEPER || p->steps > STEPS) {
    if (p->id == KEEPER) w->last = p->value;
    p->next_ns = now_of(w);
    weir_driver_end(p->driver, false);
  } else if (others_are_over(w)) {
    ask(p, false);
  }
}

#endif
