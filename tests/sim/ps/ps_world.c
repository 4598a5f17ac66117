/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/ps/ps_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/mix.h"

/* The course of a run: faults by chance, then none, then the end. */

static const int64_t kSecond = 1000000000;

static const char *const kFaults[PS_FAULT_COUNT] = {
    [PS_KILL_SERVER] = "kill_server",
    [PS_KILL_WORKER] = "kill_worker",
    [PS_KILL_CHIEF] = "kill_chief",
    [PS_DIES_AT_FAILPOINT] = "failpoint",
    [PS_PAUSE] = "pause",
    [PS_RESET] = "reset",
    [PS_ONE_WAY] = "one_way",
    [PS_SECOND_CHIEF] = "second_chief",
    [PS_DRAIN] = "drain",
    [PS_DISK_FULL] = "disk_full",
    [PS_DISK_SLOW] = "disk_slow",
    [PS_WRITE_LOST] = "write_lost",
    [PS_WRITE_KEPT] = "write_kept_unheard",
    [PS_WRITE_TORN] = "write_torn",
    [PS_CLOCK_STEP] = "clock_step",
    [PS_CLOCK_DRIFT] = "clock_drift",
    [PS_JOINS_LATE] = "joins_late",
    [PS_STOPS] = "stops",
    [PS_NAN] = "nan",
    [PS_NO_MEMORY] = "no_memory"};
const char *ps_fault_name(ps_fault fault) {
  return kFaults[fault];
}

static const char *const kSights[PS_SAW_COUNT] = {
    [PS_SAW_ROLLBACK] = "rollback",   [PS_SAW_GENERATION] = "generation",
    [PS_SAW_SECOND_EPOCH] = "fenced", [PS_SAW_RESEND] = "resend",
    [PS_SAW_DUPLICATE] = "duplicate", [PS_SAW_STALE] = "stale",
    [PS_SAW_PARKED] = "parked",       [PS_SAW_PARTIAL] = "partial",
    [PS_SAW_RETURNED] = "returned",   [PS_SAW_EVICTED] = "evicted",
    [PS_SAW_SPARE] = "spare",         [PS_SAW_SKIPPED] = "skipped",
    [PS_SAW_LATE] = "late",           [PS_SAW_REJOIN] = "rejoin",
    [PS_SAW_UNSAVED] = "unsaved_end", [PS_SAW_PAUSED_OUT] = "out_while_paused"};
const char *ps_sight_name(ps_sight sight) {
  return kSights[sight];
}

/* ---- Faults */

static bool exists(const ps_world *w, uint32_t id) {
  if (id < PS_FIRST_WORKER) return id < w->config.servers;
  if (id < PS_FIRST_CHIEF) return id - PS_FIRST_WORKER < w->config.workers;
  return true;
}

static void stop(ps_world *w, uint32_t id, int64_t away_ns) {
  ps_say(w, "%u: ends", id);
  ps_link_dead(w, id);
  ps_disk_crash(w, id);
  ps_end(w, id);
  w->processes[id].back_ns = w->now_ns + away_ns;
}

static void kill(ps_world *w, uint32_t id) {
  int kind = id < PS_FIRST_WORKER  ? PS_KILL_SERVER
             : id < PS_FIRST_CHIEF ? PS_KILL_WORKER
                                   : PS_KILL_CHIEF;
  w->result->faults[kind]++;
  uint32_t most_ms = w->restless ? 200 : 3000;
  stop(w, id, kSecond / 20 + (int64_t)ps_below(w, most_ms) * (kSecond / 1000));
}

static bool chance(ps_world *w, uint32_t ppm) {
  return ps_below(w, 1000000) < ppm;
}

static uint32_t anybody(ps_world *w) {
  uint32_t id;
  do id = ps_below(w, PS_PROCESSES);
  while (!exists(w, id));
  return id;
}

/* Forward as after a suspend, or back a little, which no machine may trust to
 * be impossible. */
static void step_clock(ps_world *w, ps_process *p) {
  bool back = ps_below(w, 4) == 0;
  int64_t ms = 1 + ps_below(w, back ? 2000 : 3600000);
  p->clock_ns += (back ? -ms : ms) * (kSecond / 1000);
  w->result->faults[PS_CLOCK_STEP]++;
  ps_say(w, "a chief's clock steps %lld ms", (long long)(back ? -ms : ms));
}

static void cause_faults(ps_world *w) {
  for (uint32_t id = 0; id < PS_PROCESSES; id++) {
    ps_process *p = &w->processes[id];
    uint32_t kind = id < PS_FIRST_WORKER ? 0 : id < PS_FIRST_CHIEF ? 1 : 2;
    if (!p->alive || p->paused) continue;
    if (chance(w, w->kill_ppm[kind])) {
      kill(w, id);
    } else if (chance(w, w->pause_ppm)) {
      ps_say(w, "%u: is paused", id);
      w->result->faults[PS_PAUSE]++;
      p->paused = true;
      p->since_ns = w->now_ns;
      uint32_t most_ms = w->restless ? 1400 : 6000;
      p->back_ns = w->now_ns + (int64_t)ps_below(w, most_ms) * (kSecond / 1000);
    } else if (kind == 1 && chance(w, w->drain_ppm)) {
      ps_say(w, "%u: is drained", id);
      w->result->faults[PS_DRAIN]++;
      weir_ps_worker_drain(p->worker);
    } else if (kind == 2 && chance(w, w->stop_ppm) && !p->ended) {
      ps_say(w, "%u: the user stops the job", id);
      w->result->faults[PS_STOPS]++;
      w->stopped = true;
      weir_ps_coordinator_stop(p->chief, ps_clock(w, p), WEIR_PS_NONE);
    } else if (kind == 2 && chance(w, w->step_ppm)) {
      step_clock(w, p);
    }
  }
  if (chance(w, w->memory_ppm)) {
    w->counted.fail_at = atomic_load(&w->counted.calls) + 1 + ps_below(w, 3);
    w->result->faults[PS_NO_MEMORY]++;
  }
  if (!chance(w, w->break_ppm)) return;
  uint32_t a = anybody(w), b = anybody(w);
  if (ps_below(w, 3) == 0) {
    a = ps_below(w, w->config.servers);
    b = ps_below(w, w->config.servers);
  }
  bool one_way = ps_below(w, 2) == 0;
  if (a == b || ps_link_of(w, a, b)->number == 0) return;
  ps_say(w, "the link of %u and %u breaks%s", a, b, one_way ? ", one way" : "");
  w->result->faults[one_way ? PS_ONE_WAY : PS_RESET]++;
  ps_link_break(w, a, b, one_way);
}

/* A process that is silent for long is given up by the others. */
static void give_up(ps_world *w, uint32_t id) {
  for (uint32_t b = 0; b < PS_PROCESSES; b++)
    if (b != id) ps_link_break(w, id, b, false);
}

static bool serves(const ps_process *p) {
  return p->alive && !p->paused && !p->ended;
}

/* A chief that is away may be replaced; one that is fenced is not needed. */
static void care_for_chiefs(ps_world *w) {
  ps_process *a = &w->processes[PS_FIRST_CHIEF], *b = a + 1;
  for (uint32_t id = PS_FIRST_CHIEF; id < PS_PROCESSES; id++) {
    ps_process *p = &w->processes[id];
    if (p->alive && p->ended && !p->paused) stop(w, id, INT64_MAX / 4);
  }
  bool one = serves(a) || serves(b);
  for (uint32_t id = PS_FIRST_CHIEF; id < PS_PROCESSES; id++) {
    ps_process *p = &w->processes[id], *other = p == a ? b : a;
    if (p->alive) continue;
    bool again = w->now_ns >= p->back_ns && !other->alive;
    bool other_away =
        other->alive && other->paused && w->now_ns > other->since_ns + kSecond;
    if (again || (!one && other_away && chance(w, w->second_ppm))) {
      if (!again) w->result->faults[PS_SECOND_CHIEF]++;
      ps_start(w, id);
      return;
    }
    if (!one && !other->alive && p->back_ns > w->now_ns + 4 * kSecond)
      p->back_ns = w->now_ns + kSecond;
  }
}

/* All that came meanwhile comes now, in order. */
static void resume(ps_world *w, uint32_t id) {
  size_t kept = 0;
  ps_say(w, "%u: goes on", id);
  w->processes[id].paused = false;
  for (size_t i = 0; i < w->held.count; i++) {
    ps_event e = w->held.items[i];
    if (e.to != id) {
      w->held.items[kept++] = e;
      continue;
    }
    e.at_ns = w->now_ns;
    ps_push(w, e);
  }
  w->held.count = kept;
}

static void bring_back(ps_world *w, bool all) {
  for (uint32_t id = 0; id < PS_PROCESSES; id++) {
    ps_process *p = &w->processes[id];
    if (!exists(w, id)) continue;
    if (p->alive && p->paused && (all || w->now_ns >= p->back_ns)) {
      resume(w, id);
    }
    if (p->alive && p->paused && w->now_ns > p->since_ns + 3 * kSecond / 2)
      give_up(w, id);
    if (id >= PS_FIRST_CHIEF) continue;
    bool drained = p->alive && p->worker != NULL && p->ended && !w->over;
    if (drained)
      stop(w, id, kSecond + (int64_t)ps_below(w, 3000) * (kSecond / 1000));
    if (!p->alive && (all || w->now_ns >= p->back_ns) &&
        (!w->over || id < PS_FIRST_WORKER))
      ps_start(w, id);
  }
  care_for_chiefs(w);
}

static void life(ps_world *w) {
  bool heal = !w->healed && w->now_ns >= w->heal_ns;
  if (!w->healed && !heal) cause_faults(w);
  if (heal) {
    ps_say(w, "all is healed");
    w->healed = true;
    for (uint32_t i = 0; i < PS_PROCESSES; i++)
      if (w->processes[i].slow > 4) w->processes[i].slow = 4;
  }
  bring_back(w, heal);
  ps_link_tick(w);
  ps_push(w, (ps_event){.at_ns = w->now_ns + kSecond / 50, .kind = PS_LIFE});
}

/* ---- A run */

static void choose_config(ps_world *w) {
  weir_ps_config *c = &w->config;
  c->mode = (weir_ps_mode)ps_below(w, WEIR_PS_MODE_COUNT);
  c->servers = 1 + ps_below(w, PS_SERVERS);
  c->workers = 1 + ps_below(w, PS_WORKERS);
  c->aggregate = c->mode == WEIR_PS_SYNC ? 1 + ps_below(w, 5) : 1;
  c->lease_steps = 1 + ps_below(w, 8);
  if (c->mode == WEIR_PS_SYNC) {
    c->backup = ps_below(w, 2) * (1 + ps_below(w, 2));
    c->norm = ps_below(w, 2) == 0;
  } else if (c->mode == WEIR_PS_BOUNDED) {
    c->staleness = ps_below(w, 4);
  } else if (ps_below(w, 2) == 0) {
    c->limited = true;
    c->max_staleness = ps_below(w, 5);
  } else {
    c->window = ps_below(w, 4);
  }
  if (c->mode != WEIR_PS_SYNC && ps_below(w, 3) == 0) c->shares = WEIR_PS_EQUAL;
  uint32_t most = PS_RUNS / c->aggregate;
  w->restless = ps_below(w, 3) == 0;
  w->total = 20 + ps_below(w, w->restless ? 600 : 180);
  if (w->total > most) w->total = most;
  w->stop_at =
      ps_below(w, 2) == 0 ? w->total : 1 + ps_below(w, (uint32_t)w->total);
  w->save_every = 2 + ps_below(w, 30);
  w->rejoin_ns = (int64_t)(200 + ps_below(w, 3000)) * (kSecond / 1000);
  if (ps_below(w, 3) == 0)
    w->evict_ns = (int64_t)(1 + ps_below(w, 3)) * kSecond;
  w->delay_us = ps_below(w, 2) == 0 ? 500 : 20000;
}

static void choose_faults(ps_world *w) {
  for (int i = 0; i < 3; i++) {
    if (ps_below(w, 2)) w->kill_ppm[i] = ps_below(w, 8000);
    w->armed[i] = ps_below(w, 2) ? ps_below(w, WEIR_PS_FP_BUG_ACK_EARLY)
                                 : WEIR_PS_FP_COUNT;
  }
  w->arm_one_in = 3 + ps_below(w, 30);
  if (ps_below(w, 2)) w->pause_ppm = ps_below(w, 6000);
  /* Servers that come back at once: pushes of the life before still come. */
  if (w->restless) {
    w->kill_ppm[0] = 20000;
    w->pause_ppm = 10000;
  }
  if (ps_below(w, 2)) w->break_ppm = ps_below(w, 150000);
  if (ps_below(w, 2)) w->drain_ppm = ps_below(w, 8000);
  if (ps_below(w, 4) == 0) w->full_ppm = ps_below(w, 300000);
  if (ps_below(w, 16) == 0) w->nan_ppm = 3000;
  if (ps_below(w, 16) == 0) w->stop_ppm = 2000;
  if (ps_below(w, 4) == 0) w->memory_ppm = 100000;
  if (ps_below(w, 3) == 0) w->slow_ppm = ps_below(w, 300000);
  if (ps_below(w, 3) == 0) w->step_ppm = ps_below(w, 20000);
  if (w->full_ppm > 0 && ps_below(w, 3) == 0) {
    w->full_ppm = 1000000; /* no write goes through */
    w->final_ns = kSecond / 2 + (int64_t)ps_below(w, 1000) * (kSecond / 1000);
    w->kept_free = true; /* it was full after the chief had come */
  }
  w->second_ppm = ps_below(w, 300000);
  for (uint32_t i = 0; i < PS_SERVERS; i++)
    w->processes[i].slow = ps_below(w, 4) == 0 ? 4 + ps_below(w, 30) : 1;
  for (uint32_t i = 0; i < PS_WORKERS; i++)
    w->processes[PS_FIRST_WORKER + i].slow =
        ps_below(w, 3) == 0 ? 4 + ps_below(w, w->restless ? 60 : 20) : 1;
  w->heal_ns = ps_below(w, 10) == 0 ? 0 : 12 * kSecond;
}

static void begin(ps_world *w) {
  for (uint32_t id = 0; id < PS_PROCESSES; id++) {
    ps_process *p = &w->processes[id];
    if (!exists(w, id)) continue;
    bool late =
        id >= PS_FIRST_WORKER && id < PS_FIRST_CHIEF && ps_below(w, 3) == 0;
    w->result->faults[PS_JOINS_LATE] += late;
    if (late || id == PS_PROCESSES - 1)
      p->back_ns = (int64_t)ps_below(w, 5000) * (kSecond / 1000);
    else
      ps_start(w, id);
  }
  ps_push(w, (ps_event){.at_ns = 1, .kind = PS_LIFE});
}

static void note(ps_world *w, const ps_event *e) {
  uint64_t x = (uint64_t)e->at_ns ^ (uint64_t)e->kind << 56 ^
               (uint64_t)e->to << 48 ^ (uint64_t)e->from << 40;
  if (e->message != NULL)
    x += weir_mix(e->message->seq + e->message->run * 3 +
                  (uint64_t)e->message->kind);
  w->result->trace = weir_mix(w->result->trace + x);
}

static void one(ps_world *w, ps_event *e) {
  ps_process *p = &w->processes[e->to];
  w->now_ns = e->at_ns;
  if (e->kind == PS_LIFE) {
    life(w);
    return;
  }
  if (!p->alive || (e->birth != 0 && e->birth != p->birth)) {
    ps_event_free(w, e);
    return;
  }
  if (p->paused) {
    if (!weir_vec_push(weir_allocator_system(), &w->held, *e)) exit(5);
    return;
  }
  note(w, e);
  if (ps_net_arrives(w, e)) ps_host_event(w, e);
  ps_event_free(w, e);
  if (p->doomed) kill(w, e->to);
}

/* All that live hear of the end. */
static bool all_ended(const ps_world *w) {
  for (uint32_t i = PS_FIRST_WORKER; i < PS_FIRST_CHIEF; i++)
    if (w->processes[i].alive && !w->processes[i].ended) return false;
  return true;
}

static void run(ps_world *w) {
  int64_t over_ns = 0;
  ps_event e;
  while (w->result->ok && ps_pop(w, &e)) {
    if (++w->result->events > 3000000) ps_wrong(w, "too many events");
    one(w, &e);
    if (w->over && over_ns == 0) {
      over_ns = w->now_ns;
      w->healed = true;
      for (uint32_t i = 0; i < PS_PROCESSES; i++)
        if (w->processes[i].paused) resume(w, i);
    }
    if (over_ns != 0 && all_ended(w)) break;
    if (over_ns != 0 && w->now_ns > over_ns + 30 * kSecond)
      ps_wrong(w, "a worker has not heard of the end");
    if (over_ns == 0 && w->now_ns > w->heal_ns + 200 * kSecond)
      ps_wrong(w, "the job does not end");
  }
  w->result->end_ms = (uint64_t)(w->now_ns / 1000000);
}

static void clean(ps_world *w) {
  ps_event e;
  for (uint32_t id = 0; id < PS_PROCESSES; id++) ps_end(w, id);
  while (ps_pop(w, &e)) ps_event_free(w, &e);
  for (uint32_t i = 0; i < PS_GENERATIONS; i++) {
    if (w->disk[i] != NULL) weir_ps_ledger_release(w->disk[i]->ledger);
    free(w->disk[i]);
  }
  for (size_t i = 0; i < w->held.count; i++)
    ps_event_free(w, &w->held.items[i]);
  weir_vec_free(weir_allocator_system(), &w->held);
  weir_vec_free(weir_allocator_system(), &w->heap);
  if (w->result->ok && w->data_live != 0)
    ps_wrong(w, "the values of %llu pushes are left",
             (unsigned long long)w->data_live);
  if (w->result->ok && atomic_load(&w->counted.live_blocks) != 0)
    ps_wrong(w, "%lld blocks are left",
             (long long)atomic_load(&w->counted.live_blocks));
}

void ps_world_run(uint64_t seed, weir_ps_failpoint plant, bool verbose,
                  ps_result *result) {
  ps_world *w = calloc(1, sizeof *w);
  memset(result, 0, sizeof *result);
  result->ok = true;
  weir_counted_allocator_init(&w->counted, NULL);
  w->alloc = &w->counted.base;
  w->random = seed * 2 + 1;
  w->plant = plant;
  w->verbose = verbose;
  w->result = result;
  choose_config(w);
  choose_faults(w);
  result->mode = w->config.mode;
  ps_say(w, "mode %d, %u servers, %u workers, N %u, backup %u, s %u, m %u",
         w->config.mode, w->config.servers, w->config.workers,
         w->config.aggregate, w->config.backup, w->config.staleness,
         w->config.max_staleness);
  begin(w);
  run(w);
  if (result->ok) ps_check_end(w);
  if (!result->ok) ps_dump(w);
  clean(w);
  free(w);
}
