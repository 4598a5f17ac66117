/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_SHARE_RUNS_H_
#define TESTS_SIM_SHARE_RUNS_H_

/* Runs, a part of share.c. */

typedef struct plan {
  uint64_t seed;
  uint64_t kill_at; /* event at which |victim| is killed; 0: never */
  uint32_t victim;
  bool silent;
  uint32_t lives; /* drivers that begin again */
  bool faults;    /* by chance */
  bool plant;     /* turns end too early */
} plan;

typedef struct outcome {
  uint64_t events, kept, doubts, last;
  uint32_t lost;
  int64_t ns;
  bool ok;
} outcome;

/* A driver that has ended or was killed; perhaps another one comes. */
static void renew(world *w, uint32_t id) {
  process *p = &w->processes[id];
  if (p->alive && p->phase == OVER && weir_driver_parted(p->driver)) {
    bool failed = p->failed;
    if (failed) say(w, "%u: failed", id);
    kill(w, id, false);
    if (failed) return;
    w->finished |= 1u << id;
  }
  if (p->alive || (w->finished >> id & 1) != 0 || now_of(w) < p->back_ns ||
      w->lives == 0)
    return;
  w->lives--;
  say(w, "%u begins again", id);
  start_process(w, id);
}

static void cause_faults(world *w) {
  weir_error err = WEIR_ERROR_INIT;
  uint32_t id = TASKS + 1 + below(w, DRIVERS - 1), task = below(w, TASKS);
  process *p = &w->processes[id];
  if (p->paused && now_of(w) >= p->back_ns) {
    p->paused = false;
    (void)weir_net_sim_pause(w->sim, id, false, &err);
    p->next_ns = now_of(w) + 1;
  }
  if (!p->alive || p->paused || below(w, 60) > 0) return;
  uint32_t which = below(w, 4);
  if (which == 0) {
    kill(w, id, below(w, 2) == 0);
  } else if (which == 1) {
    say(w, "pause %u", id);
    p->paused = true;
    p->back_ns = now_of(w) + below(w, 9000) * (kSecond / 1000);
    (void)weir_net_sim_pause(w->sim, id, true, &err);
  } else if (which == 2 && !w->cut) {
    say(w, "cut %u and %u", id, task);
    w->cut = true;
    w->cut_from = id;
    w->cut_to = task;
    w->heal_ns = now_of(w) + below(w, 9000) * (kSecond / 1000);
    (void)weir_net_sim_cut(w->sim, id, task, below(w, 2) == 0, &err);
  }
}

static void heal(world *w) {
  weir_error err = WEIR_ERROR_INIT;
  if (!w->cut || now_of(w) < w->heal_ns) return;
  say(w, "heal");
  w->cut = false;
  (void)weir_net_sim_heal(w->sim, w->cut_from, w->cut_to, true, &err);
}

static bool all_over(const world *w) {
  for (uint32_t i = TASKS; i < PROCESSES; i++)
    if (w->processes[i].alive) return false;
  return w->lives == 0 || w->finished == 7u << TASKS;
}

static void check(world *w) {
  uint32_t made = 0;
  if (w->last < w->kept || w->last > w->kept + w->doubts)
    wrong(w,
          "the number is %" PRIu64 ": %" PRIu64 " steps are kept, %" PRIu64
          " in doubt",
          w->last, w->kept, w->doubts);
  for (uint32_t i = 0; i < TASKS; i++) {
    const process *p = &w->processes[i];
    if (p->store.first_values > made) made = p->store.first_values;
    if (!weir_front_is_free(p->front)) wrong(w, "task %u is not free", i);
    if (weir_link_count(p->link) != 0)
      wrong(w, "task %u has %zu peers", i, weir_link_count(p->link));
  }
  if (made > 1 + w->lost) wrong(w, "first values came %u times", made);
}

static void life(world *w, const plan *run) {
  if (run->kill_at != 0 && w->events >= run->kill_at && !w->killed) {
    w->killed = true;
    w->lost++;
    kill(w, run->victim, run->silent);
  }
  if (run->faults && now_of(w) < 40 * kSecond) cause_faults(w);
  for (uint32_t i = TASKS; now_of(w) >= 40 * kSecond && i < PROCESSES; i++)
    if (w->processes[i].paused) w->processes[i].back_ns = 0;
  if (run->faults && now_of(w) >= 40 * kSecond) cause_faults(w);
  heal(w);
  if (w->processes[KEEPER].phase == STARTS) return;
  for (uint32_t i = TASKS + 1; i < PROCESSES; i++) renew(w, i);
  process *k = &w->processes[KEEPER];
  if (k->alive && k->phase == OVER && weir_driver_parted(k->driver)) {
    if (k->failed) wrong(w, "the keeper has failed");
    w->finished |= 1u << KEEPER;
    end_process(k);
  }
}

static outcome run_world(const plan *run, bool verbose) {
  world *w = calloc(1, sizeof *w);
  weir_error err = WEIR_ERROR_INIT;
  weir_net_sim_options options = {0};
  if (w == NULL) abort();
  weir_counted_allocator_init(&w->counted, NULL);
  w->base_env.alloc = &w->counted.base;
  w->random = run->seed * 2 + 1;
  w->verbose = verbose;
  w->ok = true;
  w->plant = run->plant;
  w->lives = run->lives + DRIVERS - 1;
  if (weir_net_sim_create(&w->base_env, run->seed, &options, &w->sim, &err) !=
      WEIR_OK)
    abort();
  w->env = weir_net_sim_env(w->sim);
  int64_t begun = now_of(w);
  for (uint32_t i = 0; i <= KEEPER; i++) start_process(w, i);
  while (w->ok && !all_over(w) && now_of(w) < begun + 300 * kSecond) {
    one_step(w);
    life(w, run);
  }
  outcome out = {.ns = now_of(w) - begun, .events = w->events};
  if (w->ok && !all_over(w)) wrong(w, "some driver waits for ever");
  for (int64_t until = now_of(w) + 20 * kSecond; w->ok && now_of(w) < until;)
    one_step(w);
  if (w->ok) check(w);
  for (uint32_t i = 0; i < PROCESSES; i++) end_process(&w->processes[i]);
  weir_vec_free(w->env->alloc, &w->laters);
  weir_net_sim_release(w->sim);
  if (w->ok && atomic_load(&w->counted.live_blocks) != 0)
    wrong(w, "%lld blocks are left",
          (long long)atomic_load(&w->counted.live_blocks));
  out.kept = w->kept;
  out.doubts = w->doubts;
  out.last = w->last;
  out.ok = w->ok;
  if (!w->ok)
    printf("seed %" PRIu64 ", kill %u at %" PRIu64 "%s: BAD %s\n", run->seed,
           run->victim, run->kill_at, run->silent ? " silently" : "", w->why);
  free(w);
  return out;
}

/* A driver is killed at each event of a run, loudly, and another begins, and
 * silently. */
static int kills(void) {
  uint64_t runs = 0, bad = 0, doubts = 0, lost = 0;
  int64_t longest = 0;
  for (uint32_t victim = KEEPER + 1; victim < PROCESSES; victim++)
    for (int silent = 0; silent < 2; silent++)
      for (uint64_t at = 1;; at++, runs++) {
        plan p = {.seed = 1 + at % 7,
                  .kill_at = at,
                  .victim = victim,
                  .silent = silent != 0,
                  .lives = silent != 0 ? 0 : 1};
        outcome out = run_world(&p, false);
        bad += !out.ok;
        doubts += out.doubts;
        lost += out.doubts - (out.last - out.kept);
        if (out.ns > longest) longest = out.ns;
        if (out.events < at || bad > 10) break;
      }
  printf("%" PRIu64 " runs, %" PRIu64 " steps in doubt, %" PRIu64
         " of them lost, the longest took %.1f s, %" PRIu64 " bad\n",
         runs, doubts, lost, (double)longest / 1e9, bad);
  /* Both fates must have come, and nobody has waited for a deadline of steps
   * (8 s) beyond the loss of a silent driver (5 s). */
  return bad > 0 || lost == 0 || lost == doubts || longest > 12 * kSecond;
}

static int many(uint64_t seeds) {
  uint64_t bad = 0, doubts = 0, kept = 0;
  for (uint64_t seed = 1; seed <= seeds; seed++) {
    plan p = {.seed = seed, .lives = 6, .faults = true};
    outcome out = run_world(&p, false);
    bad += !out.ok;
    doubts += out.doubts;
    kept += out.kept;
  }
  printf("%" PRIu64 " seeds, %" PRIu64 " steps kept, %" PRIu64
         " in doubt, %" PRIu64 " bad\n",
         seeds, kept, doubts, bad);
  return bad > 0 || doubts == 0;
}

static int plant(void) {
  plan p = {.lives = 6, .faults = true, .plant = true};
  for (p.seed = 1; p.seed <= 500; p.seed++)
    if (!run_world(&p, false).ok) return 0;
  printf("NOT found\n");
  return 1;
}

int main(int argc, char **argv) {
  plan one = {.lives = 6, .faults = true};
  if (argc == 2 && strcmp(argv[1], "--kills") == 0) return kills();
  if (argc == 2 && strcmp(argv[1], "--plant") == 0) return plant();
  if (argc == 3 && strcmp(argv[1], "--seeds") == 0)
    return many(strtoull(argv[2], NULL, 10));
  if (argc >= 3 && strcmp(argv[1], "--seed") == 0) {
    one.seed = strtoull(argv[2], NULL, 10);
    if (argc >= 5) { /* the victim and the event */
      one = (plan){.seed = one.seed, .lives = 1};
      one.victim = (uint32_t)strtoul(argv[3], NULL, 10);
      one.kill_at = strtoull(argv[4], NULL, 10);
      one.silent = argc > 5;
    }
    return run_world(&one, true).ok ? 0 : 1;
  }
  fprintf(stderr,
          "weir-sim-share --kills | --plant | --seeds N | --seed N [VICTIM "
          "EVENT]\n");
  return 2;
}

#endif
