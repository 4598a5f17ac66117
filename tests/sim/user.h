/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_USER_H_
#define TESTS_SIM_USER_H_

/* The driver's user, a part of world.c: registers, runs, compares, begins
 * again, and looks at the end. */

static void user_started(void *self, const weir_error *err) {
  world *w = self;
  say(w, "user: started %s", err != NULL ? err->message : "well");
  if (err == NULL) w->phase = USER_REGISTERS;
}

/* The driver has committed |step| of |program|. */
static void note_commit(world *w, uint64_t step, const fake_program *program) {
  record *r = &w->logs[w->log_count - 1]->steps[step];
  for (uint32_t i = 0; i < w->tasks; i++)
    if (fake_has_work(program, i)) r->must |= 1u << i;
  w->result->commits++;
}

/* A commit that the driver reports is on every task. */
static void check_kept(world *w) {
  const process *p = &w->processes[FAKE_TASKS];
  if (p->driver == NULL || w->log_count == 0) return;
  session_log *log = w->logs[w->log_count - 1];
  uint64_t kept = weir_driver_kept(p->driver);
  if (kept > weir_driver_committed(p->driver) || kept < log->kept)
    wrong(w, "step %" PRIu64 " is kept, but not committed", kept);
  for (; log->kept < kept && kept < STEPS; log->kept++) {
    const record *r = &log->steps[log->kept + 1];
    if ((r->must & ~r->yes) != 0)
      wrong(w,
            "step %" PRIu64 " is reported as kept, but only %x of %x have it",
            log->kept + 1, r->yes, r->must);
  }
}

static void user_registered(void *self, const weir_driver_program *program,
                            const weir_error *err) {
  world *w = self;
  say(w, "user: program %u %s", program->program,
      err != NULL ? err->message : "registered");
  if (err != NULL) {
    if (w->healed && strcmp(err->id, "W7020") != 0 &&
        strcmp(err->id, "W7022") != 0 && strcmp(err->id, "W7027") != 0)
      wrong(w, "program %u: %s", program->program, err->message);
    weir_driver_end(w->processes[FAKE_TASKS].driver, false);
    return;
  }
  w->registered++;
}

/* Compares with one process. */
static void user_stepped(void *self, const weir_driver_result *result,
                         const weir_error *err) {
  world *w = self;
  uint64_t value = 0, fresh[FAKE_TASKS];
  uint32_t node = 0, program = w->asked[result->step % STEPS].program;
  uint64_t random_step = w->asked[result->step % STEPS].random_step;
  const fake_program *p = &w->programs[program];
  w->under_way--;
  bool good = fake_expect(p, random_step, w->variables, &value, fresh, &node);
  say(w, "user: step %" PRIu64 " %s%s", result->step,
      err != NULL ? err->message : "done", result->committed ? "!" : "");
  w->result->steps++;
  bool decided = result->committed;
  if (err == NULL) {
    uint64_t got = 0;
    for (size_t i = 0; i < result->fetch_count; i++)
      if (result->fetches[i].size == 8)
        memcpy(&got, result->fetches[i].data, 8);
    if (!good)
      wrong(w, "step %" PRIu64 " should have failed at node %u", result->step,
            node);
    else if (result->fetch_count != 1 || got != value)
      wrong(w, "step %" PRIu64 " gave %" PRIx64 ", one process %" PRIx64,
            result->step, got, value);
    if (result->held) {
      w->held = result->step;
      w->under_way++; /* until it is decided */
      memcpy(w->held_variables, fresh, sizeof fresh);
      w->held_program = p;
      decided = true;
    }
    if (decided != p->writes)
      wrong(w, "step %" PRIu64 ": committed %d", result->step,
            result->committed);
    if (result->committed) {
      memcpy(w->variables, fresh, sizeof fresh);
      note_commit(w, result->step, p);
    }
  } else if (strcmp(err->id, "W5004") == 0) {
    w->result->own[WORLD_NODE_FAILS]++;
    char want[64];
    snprintf(want, sizeof want, "node %u fails", node);
    if (good || strcmp(err->message, want) != 0)
      wrong(w, "step %" PRIu64 " failed with '%s', one process %s",
            result->step, err->message, good ? "works" : want);
  } else if (strcmp(err->id, "W7011") == 0) {
    wrong(w, "the protocol is broken: %s", err->message);
  } else if (strcmp(err->id, "W5005") == 0) {
    w->result->own[WORLD_CANCEL]++;
  } else {
    w->to_run++; /* again, in the next session */
    w->broken = true;
  }
}

static void user_variables(void *self, uint64_t request,
                           const weir_error *err) {
  (void)self, (void)request, (void)err;
}

static void user_over(void *self, const weir_error *err) {
  world *w = self;
  say(w, "user: over %s", err != NULL ? err->message : "well");
  const weir_driver *driver = w->processes[FAKE_TASKS].driver;
  if (err != NULL && weir_driver_kept(driver) < weir_driver_committed(driver))
    w->result->own[WORLD_UNSURE]++;
  if (err != NULL && strcmp(err->id, "W7011") == 0)
    wrong(w, "the protocol is broken: %s", err->message);
  if (err != NULL && strcmp(err->id, "W7021") == 0) {
    bool named = false;
    for (uint32_t i = 0; i < w->tasks; i++) {
      char name[32];
      snprintf(name, sizeof name, ": worker:%u ", i);
      named |=
          (w->stuck_tasks >> i & 1) != 0 && strstr(err->message, name) != NULL;
    }
    bool calm = w->healed && now_of(w) > w->heal_ns + 10 * kSecond;
    if (w->stuck_tasks == 0 && calm)
      wrong(w, "a step hangs: %s", err->message);
    else if (w->stuck_tasks != 0 && !named && calm)
      wrong(w, "tasks %x are stuck, and the report says: %s", w->stuck_tasks,
            err->message);
  }
  w->again_ns = now_of(w) + kSecond / 10;
  if (err == NULL && w->phase == USER_ENDS) w->done = true;
}

static void user_place(void *self, uint32_t place, weir_peer *peer) {
  (void)self, (void)place, (void)peer;
}

static weir_status user_value(void *self, uint32_t place,
                              const Weir__V1__Control *m, weir_error *err) {
  (void)self, (void)place, (void)m, (void)err;
  return WEIR_OK;
}

static weir_status user_blob(void *self, uint32_t place, const uint8_t *name,
                             uint32_t number, weir_error *err) {
  (void)self, (void)place, (void)name, (void)number, (void)err;
  return WEIR_OK;
}

static void user_drop(void *self, uint64_t step, const weir_error *why) {
  (void)self, (void)step, (void)why;
}

static void user_create(world *w) {
  w->program_count = 1 + below(w, PROGRAMS);
  for (uint32_t i = 0; i < w->program_count; i++)
    fake_program_make(&w->programs[i], weir_mix_next(&w->random), w->tasks);
  w->to_run = 20 + below(w, 150);
  w->think_ms = below(w, 2) == 0 ? 0 : below(w, 1000);
}

/* A new session, with a larger epoch. */
static void user_begin(world *w) {
  process *p = &w->processes[FAKE_TASKS];
  weir_error err = WEIR_ERROR_INIT;
  weir_driver_task tasks[FAKE_TASKS];
  if (w->log_count == SESSIONS) {
    wrong(w, "%d sessions", SESSIONS);
    return;
  }
  for (uint32_t i = 0; i < w->tasks; i++)
    tasks[i] = (weir_driver_task){"worker", i, w->addresses[i]};
  w->to_run += w->under_way;
  w->under_way = 0;
  w->registered = 0;
  w->again_ns = 0;
  w->broken = false;
  w->stuck_tasks = 0;
  w->held = 0;
  w->phase = USER_STARTS;
  w->epoch++;
  w->result->sessions++;
  session_log *log = calloc(1, sizeof *log);
  log->epoch = w->epoch;
  w->logs[w->log_count++] = log;
  for (uint32_t i = 0; i < FAKE_TASKS; i++)
    w->variables[i] = fake_first_variable(i);
  memset(w->numbers, 0, sizeof w->numbers);
  weir_driver_options options = {.epoch = w->epoch,
                                 .tasks = tasks,
                                 .task_count = w->tasks,
                                 .start_ns = 20 * kSecond,
                                 .step_ns = 8 * kSecond};
  if (w->plant == WORLD_PLANT_STEP) options.plant = 1;
  if (w->plant == WORLD_PLANT_COMMIT) options.plant = 2;
  if (w->plant == WORLD_PLANT_WAIT) options.plant = 4;
  if (w->plant == WORLD_PLANT_KEPT) options.plant = 8;
  weir_driver_calls calls = {
      w,         user_started, user_registered, user_stepped, user_variables,
      user_over, user_place,   user_value,      user_blob,    user_drop};
  if (weir_driver_create(w->env->alloc, p->link, now_of(w), &options, &calls,
                         &p->driver, &err) != WEIR_OK)
    wrong(w, "no driver: %s", err.message);
  p->next_ns = now_of(w);
}

static void user_register(world *w, uint32_t i) {
  Weir__V1__Register request = WEIR__V1__REGISTER__INIT;
  weir_error err = WEIR_ERROR_INIT;
  uint32_t places[FAKE_TASKS];
  size_t count = 0;
  request.graph_hash = w->programs[i].seed;
  request.flags = w->tasks;
  for (uint32_t k = 0; k < w->tasks; k++)
    if (fake_has_work(&w->programs[i], k)) places[count++] = k;
  if (weir_driver_register(w->processes[FAKE_TASKS].driver, now_of(w), &request,
                           places, count, &w->numbers[i], &err) != WEIR_OK &&
      w->result->ok)
    w->numbers[i] = 0; /* the session has just failed */
}

static void user_run(world *w) {
  weir_error err = WEIR_ERROR_INIT;
  uint32_t i = below(w, w->program_count);
  weir_driver_step step = {.program = w->numbers[i],
                           .random_step = w->random_step + 1,
                           .hold = below(w, 2) == 0};
  uint64_t number = 0;
  if (weir_driver_run(w->processes[FAKE_TASKS].driver, now_of(w), &step,
                      &number, &err) != WEIR_OK)
    return;
  if (below(w, 50) == 0) {
    weir_fail(&err, WEIR_W5005, NULL, "the user wants it no more");
    weir_driver_cancel(w->processes[FAKE_TASKS].driver, number, &err);
  }
  w->random_step++;
  w->asked[number % STEPS].program = i;
  w->asked[number % STEPS].random_step = w->random_step;
  w->to_run--;
  w->under_way++;
  w->processes[FAKE_TASKS].next_ns = now_of(w);
}

/* Decides on a step that is held. */
static void user_decide(world *w) {
  weir_error err = WEIR_ERROR_INIT;
  uint64_t step = w->held;
  bool yes = below(w, 4) > 0;
  if (step == 0 || below(w, 3) == 0) return; /* later */
  w->held = 0;
  w->under_way--;
  w->processes[FAKE_TASKS].next_ns = now_of(w);
  if (weir_driver_decide(w->processes[FAKE_TASKS].driver, now_of(w), step, yes,
                         &err) != WEIR_OK) {
    w->to_run++;
    w->broken = true;
    if (strcmp(err.id, "W7011") == 0)
      wrong(w, "the protocol is broken: %s", err.message);
    return;
  }
  say(w, "user: step %" PRIu64 " %s", step, yes ? "is taken" : "is refused");
  if (!yes) return;
  memcpy(w->variables, w->held_variables, sizeof w->variables);
  note_commit(w, step, w->held_program);
}

static void user_tick(world *w) {
  process *p = &w->processes[FAKE_TASKS];
  if (!p->alive || p->paused || p->driver == NULL || w->done) return;
  check_kept(w);
  if (w->again_ns != 0) {
    if (now_of(w) < w->again_ns) return;
    weir_driver_release(p->driver);
    p->driver = NULL;
    user_begin(w);
    return;
  }
  user_decide(w);
  if (w->phase == USER_REGISTERS) {
    for (uint32_t i = 0; i < w->program_count; i++)
      if (w->numbers[i] == 0) user_register(w, i);
    if (w->registered == w->program_count) w->phase = USER_RUNS;
  }
  if (w->broken) {
    weir_driver_end(p->driver, false);
    p->next_ns = now_of(w);
    return;
  }
  if (w->phase == USER_RUNS && now_of(w) >= w->think_ns) {
    /* Some users wait between their steps. */
    if (below(w, 4) == 0)
      w->think_ns = now_of(w) + below(w, w->think_ms + 1) * (kSecond / 1000);
    uint32_t window = 1 + below(w, 4);
    while (w->to_run > 0 && w->under_way < window) {
      uint32_t before = w->to_run;
      user_run(w);
      if (w->to_run == before) break;
    }
    if (w->to_run == 0 && w->under_way == 0) {
      w->phase = USER_ENDS;
      weir_driver_end(p->driver, false);
      p->next_ns = now_of(w);
    }
  }
}

/* Everybody is free after a while, and nothing is left over. */
static void user_check_end(world *w, int64_t *life_ns) {
  int64_t until = now_of(w) + 20 * kSecond;
  while (w->result->ok && now_of(w) < until) one_step(w, life_ns);
  for (uint32_t i = 0; i < w->tasks && w->result->ok; i++) {
    const process *p = &w->processes[i];
    if (!p->alive || p->paused) continue;
    if (!weir_task_is_free(p->task))
      wrong(w, "task %u is not free at the end", i);
    else if (weir_link_count(p->link) != 0)
      wrong(w, "task %u has %zu peers at the end", i, weir_link_count(p->link));
    else if (fake_engine_left(p->engine) != 0)
      wrong(w, "task %u has %zu things left", i, fake_engine_left(p->engine));
  }
}

#endif
