/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/mix.h"
#include "runtime/base/vec.h"
#include "runtime/dist/driver/driver.h"
#include "runtime/dist/link/out.h"
#include "runtime/dist/task/task.h"
#include "runtime/net/wire.h"
#include "tests/counted.h"

enum {
  PROCESSES = FAKE_TASKS + 1, /* the driver is the last */
  PROGRAMS = 3,
  STEPS = 4096, /* of a session, at most */
  SESSIONS = 256
};
static const int64_t kSecond = 1000000000;

typedef struct world world;

/* A connection of a process's bulk transport. */
typedef struct bulk_entry {
  weir_connection c;
  uint64_t tag; /* of our own attempt; 0: came in */
  bool connected, greeted;
  weir_peer *peer; /* once it is opened */
} bulk_entry;

typedef struct process {
  world *w;
  uint32_t id;
  bool alive, paused;
  uint64_t incarnation;
  weir_transport *control, *bulk;
  weir_link *link;
  weir_task *task;
  weir_engine *engine;
  weir_link_out *out;
  weir_driver *driver;
  weir_peer *peers[PROCESSES]; /* of the session, by place; last: driver */
  WEIR_VEC(bulk_entry) bulks;
  int64_t next_ns, back_ns; /* its tick; when a killed one comes back */
  int64_t alone_ns;         /* when it lost the driver */
} process;

typedef struct later {
  int64_t at_ns;
  uint64_t order;
  process *p;
  uint64_t incarnation;
  weir_engine_event *event;
} later;

/* The tasks that committed a step. */
typedef struct record {
  uint32_t yes, no; /* bits of tasks */
  uint32_t must;    /* if the driver committed it: those that it must be on */
} record;

typedef struct session_log {
  uint64_t epoch;
  uint32_t died; /* bits of tasks that were killed in it */
  uint64_t kept; /* the driver has reported steps up to it */
  record steps[STEPS];
} session_log;

typedef enum user_phase {
  USER_STARTS,
  USER_REGISTERS,
  USER_RUNS,
  USER_ENDS
} user_phase;

struct world {
  weir_counted_allocator counted;
  weir_env base_env;
  const weir_env *env;
  weir_net_sim *sim;
  uint64_t random;
  uint32_t tasks;
  world_plant plant;
  bool verbose, healed, done;
  int64_t heal_ns, end_ns, cut_until_ns;
  uint32_t cut_from, cut_to;
  process processes[PROCESSES];
  char addresses[FAKE_TASKS][64];
  WEIR_VEC(later) laters;
  uint64_t orders;
  uint32_t stuck_ppm, kill_ppm, pause_ppm, cut_ppm;
  world_result *result;
  /* The user. */
  user_phase phase;
  fake_program programs[PROGRAMS];
  uint32_t numbers[PROGRAMS], program_count, registered;
  uint64_t epoch, variables[FAKE_TASKS], random_step;
  struct {
    uint64_t random_step;
    uint32_t program;
  } asked[STEPS];
  uint64_t first_asked, last_stepped;
  uint32_t to_run, under_way;
  uint64_t held, held_variables[FAKE_TASKS]; /* a step to be decided; 0 */
  const fake_program *held_program;
  int64_t again_ns;
  uint64_t session_started;
  session_log *logs[SESSIONS];
  uint32_t log_count;
  uint32_t stuck_tasks; /* bits, in this session */
  bool broken;          /* a step failed for a lost task */
  int64_t think_ns;
  uint32_t think_ms;
};

static const char *const kPlants[] = {
    [WORLD_PLANT_NONE] = "none",     [WORLD_PLANT_STEP] = "step",
    [WORLD_PLANT_COMMIT] = "commit", [WORLD_PLANT_LATE] = "late",
    [WORLD_PLANT_WAIT] = "wait",     [WORLD_PLANT_EPOCH] = "epoch",
    [WORLD_PLANT_KEPT] = "kept"};
const char *world_plant_name(world_plant plant) {
  return kPlants[plant];
}

static const char *const kFaults[] = {[WORLD_KILL_TASK] = "kill_task",
                                      [WORLD_KILL_DRIVER] = "kill_driver",
                                      [WORLD_NODE_FAILS] = "node_fails",
                                      [WORLD_STUCK] = "stuck",
                                      [WORLD_FATE] = "fate",
                                      [WORLD_CANCEL] = "cancel",
                                      [WORLD_UNSURE] = "unsure"};
const char *world_fault_name(world_fault fault) {
  return kFaults[fault];
}

static int64_t now_of(const world *w) {
  return w->env->clock->now_ns(w->env->clock->self);
}

static uint32_t below(world *w, uint32_t limit) {
  return weir_mix_below(&w->random, limit);
}

static void __attribute__((format(printf, 2, 3)))
wrong(world *w, const char *fmt, ...) {
  if (!w->result->ok) return;
  w->result->ok = false;
  int n = snprintf(w->result->why, sizeof w->result->why,
                   "at %.3f s: ", (double)now_of(w) / 1e9);
  va_list args;
  va_start(args, fmt);
  vsnprintf(w->result->why + n, sizeof w->result->why - (size_t)n, fmt, args);
  va_end(args);
}

static void __attribute__((format(printf, 2, 3)))
say(world *w, const char *fmt, ...) {
  char text[700];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  w->result->trace =
      weir_mix(w->result->trace ^ (uint64_t)now_of(w)) ^ strlen(text);
  for (const char *c = text; *c != '\0'; c++)
    w->result->trace = weir_mix(w->result->trace + (uint8_t)*c);
  if (w->verbose) printf("%10.4f %s\n", (double)now_of(w) / 1e9, text);
}

/* ---- Transports to links */

static void link_up(void *self, weir_peer *peer) {
  process *p = self;
  if (p->task != NULL) weir_task_up(p->task, now_of(p->w), peer);
  if (p->driver != NULL) weir_driver_up(p->driver, now_of(p->w), peer);
}

static void link_message(void *self, weir_peer *peer,
                         const Weir__V1__Control *m) {
  process *p = self;
  if (p->task != NULL) weir_task_message(p->task, now_of(p->w), peer, m);
  if (p->driver != NULL) weir_driver_message(p->driver, now_of(p->w), peer, m);
}

static void link_lost(void *self, weir_peer *peer, const weir_error *why) {
  process *p = self;
  say(p->w, "%u: %s is lost: %s", p->id, peer->name, why->message);
  if (peer == p->peers[PROCESSES - 1]) p->alone_ns = now_of(p->w);
  if (p->task != NULL) weir_task_lost(p->task, now_of(p->w), peer, why);
  if (p->driver != NULL) weir_driver_lost(p->driver, now_of(p->w), peer, why);
}

static void settle(process *p) {
  int64_t now = now_of(p->w), other = INT64_MAX;
  if (!p->alive) return;
  if (p->engine != NULL) fake_engine_pump(p->engine);
  p->next_ns = weir_link_tick(p->link, now);
  if (p->task != NULL) other = weir_task_tick(p->task, now);
  if (p->driver != NULL) {
    other = weir_driver_tick(p->driver, now);
    int64_t again = weir_link_tick(p->link, now);
    if (again < p->next_ns) p->next_ns = again;
  }
  if (other < p->next_ns) p->next_ns = other;
}

static void control_connected(void *self, weir_connection c, weir_sv peer,
                              bool incoming) {
  process *p = self;
  weir_link_on_connected(p->link, now_of(p->w), c, peer, incoming);
}

static void control_frame(void *self, weir_connection c,
                          weir_net_frame *frame) {
  process *p = self;
  weir_link_on_frame(p->link, now_of(p->w), c, frame);
}

static void control_closed(void *self, weir_connection c, weir_close_reason why,
                           weir_sv text) {
  process *p = self;
  weir_link_on_closed(p->link, now_of(p->w), c, why, text);
}

static bulk_entry *bulk_of(process *p, weir_connection c) {
  for (size_t i = 0; i < p->bulks.count; i++)
    if (p->bulks.items[i].c == c) return &p->bulks.items[i];
  return NULL;
}

static void bulk_forget(process *p, weir_connection c) {
  bulk_entry *b = bulk_of(p, c);
  if (b != NULL) *b = p->bulks.items[--p->bulks.count];
}

static void bulk_connected(void *self, weir_connection c, weir_sv peer,
                           bool incoming) {
  (void)peer;
  process *p = self;
  if (incoming)
    (void)weir_vec_push(p->w->env->alloc, &p->bulks,
                        (bulk_entry){.c = c, .connected = true});
  bulk_entry *b = bulk_of(p, c);
  if (b == NULL) return;
  b->connected = true;
  weir_link_bulk_on_connected(p->link, now_of(p->w), b->tag, c);
}

static void bulk_frame(void *self, weir_connection c, weir_net_frame *frame) {
  process *p = self;
  bulk_entry *b = bulk_of(p, c);
  if (b == NULL) return;
  if (!b->greeted) {
    b->greeted = true;
    weir_link_bulk_on_frame(p->link, now_of(p->w), c, frame);
    return;
  }
  weir_error err = WEIR_ERROR_INIT;
  weir_peer *peer = b->peer;
  if (peer == NULL || p->engine == NULL || peer->place >= p->w->tasks ||
      p->peers[peer->place] != peer)
    return;
  if (fake_engine_bulk(p->engine, peer->place, frame, &err) != WEIR_OK)
    weir_link_give_up(peer, &err);
}

static void bulk_closed(void *self, weir_connection c, weir_close_reason why,
                        weir_sv text) {
  process *p = self;
  bulk_entry *b = bulk_of(p, c);
  if (b == NULL) return;
  bulk_entry was = *b;
  bulk_forget(p, c);
  if (was.connected)
    weir_link_bulk_on_closed(p->link, now_of(p->w), c, why, text);
  else
    weir_link_bulk_on_connected(p->link, now_of(p->w), was.tag, 0);
}

static void call_bulk_connect(void *self, uint64_t tag, const char *address) {
  process *p = self;
  weir_error err = WEIR_ERROR_INIT;
  weir_connection c = 0;
  if (p->bulk->vt->connect(p->bulk, weir_sv_from(address), &c, &err) !=
      WEIR_OK) {
    wrong(p->w, "bulk connect: %s", err.message);
    return;
  }
  (void)weir_vec_push(p->w->env->alloc, &p->bulks,
                      (bulk_entry){.c = c, .tag = tag});
}

static void call_bulk_close(void *self, weir_connection c) {
  process *p = self;
  p->bulk->vt->close(p->bulk, c);
  bulk_forget(p, c);
}

static void call_bulk_opened(void *self, weir_connection c, weir_peer *peer) {
  bulk_entry *b = bulk_of(self, c);
  if (b != NULL) b->peer = peer;
}

/* ---- Tasks */

static weir_status task_session(void *self, uint32_t places,
                                const struct weir_wire_out **out,
                                weir_error *err) {
  process *p = self;
  memset(p->peers, 0, sizeof p->peers);
  WEIR_TRY(weir_link_out_create(p->w->env->alloc, p->control, p->bulk, places,
                                &p->out, err));
  *out = &p->out->base;
  return WEIR_OK;
}

static void task_place(void *self, uint32_t place, weir_peer *peer) {
  process *p = self;
  p->peers[place == WEIR_PEER_DRIVER ? PROCESSES - 1 : place] = peer;
  weir_link_out_set(p->out, place, peer);
}

static void task_session_over(void *self) {
  process *p = self;
  memset(p->peers, 0, sizeof p->peers);
  weir_link_out_release(p->out);
  p->out = NULL;
  say(p->w, "%u: session over, %zu left", p->id, fake_engine_left(p->engine));
  if (fake_engine_left(p->engine) != 0)
    wrong(p->w, "task %u keeps %zu things of a session that is over", p->id,
          fake_engine_left(p->engine));
}

static void task_stop(void *self) {
  (void)self;
}

static void engine_later(void *self, weir_engine_event *event) {
  process *p = self;
  world *w = p->w;
  later l = {now_of(w) + 1000 + below(w, 2000000), ++w->orders, p,
             p->incarnation, event};
  if (event->kind == WEIR_ENGINE_ENDED) l.at_ns = now_of(w) + 3000000;
  (void)weir_vec_push(w->env->alloc, &w->laters, l);
}

static void engine_left(void *self) {
  process *p = self;
  if (p->w->phase != USER_ENDS) return;    /* some step has not begun here */
  if (p->alone_ns == now_of(p->w)) return; /* its last words were lost */
  wrong(p->w, "task %u keeps values of a session that ended well", p->id);
}

static session_log *log_of(world *w, uint64_t epoch) {
  for (uint32_t i = 0; i < w->log_count; i++)
    if (w->logs[i]->epoch == epoch) return w->logs[i];
  return NULL;
}

static void engine_committed(void *self, uint64_t epoch, uint64_t step,
                             bool yes) {
  process *p = self;
  world *w = p->w;
  session_log *log = log_of(w, epoch);
  say(w, "%u: step %" PRIu64 " %s", p->id, step, yes ? "committed" : "aborted");
  if (log == NULL || step >= STEPS) return;
  record *r = &log->steps[step];
  *(yes ? &r->yes : &r->no) |= 1u << p->id;
  bool alone = p->peers[PROCESSES - 1] == NULL;
  if (alone) w->result->own[WORLD_FATE]++;
  /* It could reach nobody for so long that the others count as dead. */
  if (alone && now_of(w) >= p->alone_ns + 10 * kSecond) {
    log->died |= 1u << p->id;
    return;
  }
  if ((r->yes & r->no) != 0)
    wrong(w, "task %u committed and aborted step %" PRIu64, p->id, step);
  if (r->yes != 0 && (r->no & ~log->died) != 0 && (r->yes & ~log->died) != 0)
    wrong(w,
          "step %" PRIu64 " of epoch %" PRIu64
          " is committed on tasks %x and aborted on %x",
          step, epoch, r->yes, r->no);
}

static bool engine_stuck(void *self, uint64_t step) {
  process *p = self;
  world *w = p->w;
  if (w->healed || below(w, 1000000) >= w->stuck_ppm) return false;
  w->result->own[WORLD_STUCK]++;
  say(w, "%u: stuck in step %" PRIu64, p->id, step);
  w->stuck_tasks |= 1u << p->id;
  return true;
}

/* ---- Processes */

static void make_link(process *p, const char *bulk_address) {
  world *w = p->w;
  weir_link_self self = {.index = p->id,
                         .incarnation = p->incarnation,
                         .cluster_hash = 99,
                         .profile = p->id + 1,
                         .protocol_min = 1,
                         .protocol_max = 1,
                         .build = "sim"};
  if (p->id < FAKE_TASKS) snprintf(self.job, sizeof self.job, "worker");
  self.job_id[0] = 7;
  snprintf(self.bulk_address, sizeof self.bulk_address, "%s", bulk_address);
  weir_link_events events = {p, link_up, link_message, link_lost};
  weir_link_bulk bulk = {p, p->bulk, call_bulk_connect, call_bulk_close,
                         call_bulk_opened};
  weir_link_options options = {.probes = true};
  if (weir_link_create(w->env->alloc, &self, &options, &events, p->control,
                       &bulk, &p->link) != WEIR_OK)
    wrong(w, "no link");
}

static void start_process(world *w, uint32_t id) {
  process *p = &w->processes[id];
  weir_error err = WEIR_ERROR_INIT;
  char address[64], bound[WEIR_NET_ADDRESS_BYTES] = "";
  weir_transport_handler c = {p, control_connected, control_frame,
                              control_closed};
  weir_transport_handler b = {p, bulk_connected, bulk_frame, bulk_closed};
  weir_transport_options co = {.cls = WEIR_NET_CONTROL};
  weir_transport_options bo = {.cls = WEIR_NET_BULK};
  p->w = w;
  p->id = id;
  p->incarnation = weir_mix_next(&w->random) | 1;
  p->next_ns = now_of(w);
  if (weir_net_sim_transport(w->sim, id, &c, &co, &p->control, &err) !=
          WEIR_OK ||
      weir_net_sim_transport(w->sim, id, &b, &bo, &p->bulk, &err) != WEIR_OK)
    wrong(w, "no transport: %s", err.message);
  if (id < FAKE_TASKS) {
    snprintf(w->addresses[id], sizeof w->addresses[id], "sim:%u:1", id);
    if (p->control->vt->listen(p->control, weir_sv_from(w->addresses[id]),
                               bound, &err) != WEIR_OK)
      wrong(w, "listen: %s", err.message);
    snprintf(address, sizeof address, "sim:%u:2", id);
    if (p->bulk->vt->listen(p->bulk, weir_sv_from(address), bound, &err) !=
        WEIR_OK)
      wrong(w, "listen: %s", err.message);
  }
  make_link(p, bound);
  p->alive = true;
  p->paused = false;
  if (id == FAKE_TASKS) return;
  fake_calls calls = {p, engine_later, engine_left, engine_committed,
                      engine_stuck};
  uint32_t plant = w->plant == WORLD_PLANT_LATE    ? FAKE_PLANT_LATE
                   : w->plant == WORLD_PLANT_EPOCH ? FAKE_PLANT_OLD_EPOCH
                                                   : 0;
  (void)fake_engine_create(w->env->alloc, &calls, plant, &p->engine);
  weir_task_calls task = {p, task_session, task_place, task_session_over,
                          task_stop};
  if (weir_task_create(w->env->alloc, p->link, p->engine, NULL, &task,
                       &p->task) != WEIR_OK)
    wrong(w, "no task");
}

/* Ends the parts of a process, as its death would. */
static void end_process(process *p) {
  world *w = p->w;
  if (!p->alive) return;
  p->alive = false;
  for (size_t i = 0; i < w->laters.count;) {
    if (w->laters.items[i].p != p) {
      i++;
      continue;
    }
    weir_engine_event *event = w->laters.items[i].event;
    w->laters.items[i] = w->laters.items[--w->laters.count];
    event->release(event);
  }
  weir_driver_release(p->driver);
  weir_task_release(p->task);
  weir_link_release(p->link);
  weir_transport_release(p->control);
  weir_transport_release(p->bulk);
  for (uint32_t i = 0; p->out != NULL && i < w->tasks; i++)
    weir_link_out_set(p->out, i, NULL);
  if (p->engine != NULL) p->engine->vt->release(p->engine);
  weir_link_out_release(p->out);
  p->out = NULL;
  weir_vec_free(w->env->alloc, &p->bulks);
  p->driver = NULL;
  p->task = NULL;
  p->engine = NULL;
  p->link = NULL;
  p->control = p->bulk = NULL;
}

static void one_step(world *w, int64_t *life_ns);

#include "tests/sim/user.h"

/* ---- Faults by chance, and the course of a run */

static void note_death(world *w, uint32_t id) {
  session_log *log = log_of(w, w->epoch);
  if (log != NULL) log->died |= 1u << id;
}

static void kill(world *w, uint32_t id) {
  weir_error err = WEIR_ERROR_INIT;
  process *p = &w->processes[id];
  bool silent = below(w, 3) == 0;
  if (!p->alive) return;
  say(w, "kill %u%s", id, silent ? " silently" : "");
  w->result->own[id < FAKE_TASKS ? WORLD_KILL_TASK : WORLD_KILL_DRIVER]++;
  if (id < FAKE_TASKS) note_death(w, id);
  if (weir_net_sim_kill(w->sim, id, silent, &err) != WEIR_OK)
    wrong(w, "kill: %s", err.message);
  end_process(p);
  p->back_ns = now_of(w) + kSecond / 2 + below(w, 4000) * (kSecond / 1000);
}

static uint32_t somebody(world *w) {
  uint32_t id = below(w, w->tasks + 1);
  return id == w->tasks ? FAKE_TASKS : id;
}

static void cause_faults(world *w) {
  weir_error err = WEIR_ERROR_INIT;
  if (below(w, 1000000) < w->kill_ppm) kill(w, somebody(w));
  if (below(w, 1000000) < w->pause_ppm) {
    process *p = &w->processes[somebody(w)];
    if (p->alive && !p->paused) {
      say(w, "pause %u", p->id);
      p->paused = true;
      p->back_ns = now_of(w) + below(w, 8000) * (kSecond / 1000);
      (void)weir_net_sim_pause(w->sim, p->id, true, &err);
    }
  }
  if (below(w, 1000000) < w->cut_ppm) {
    uint32_t from = somebody(w), to = somebody(w);
    if (from != to)
      (void)weir_net_sim_slow(w->sim, from, to, 100000 + below(w, 900000),
                              &err);
  }
  if (below(w, 1000000) < w->cut_ppm && w->cut_until_ns == 0) {
    w->cut_from = somebody(w);
    w->cut_to = somebody(w);
    bool both = below(w, 2) == 0;
    if (w->cut_from != w->cut_to) {
      say(w, "cut %u to %u%s", w->cut_from, w->cut_to, both ? " both" : "");
      (void)weir_net_sim_cut(w->sim, w->cut_from, w->cut_to, both, &err);
      w->cut_until_ns = now_of(w) + below(w, 8000) * (kSecond / 1000) + 1;
    }
  }
}

static void heal_cut(world *w) {
  weir_error err = WEIR_ERROR_INIT;
  if (w->cut_until_ns == 0) return;
  say(w, "heal");
  (void)weir_net_sim_heal(w->sim, w->cut_from, w->cut_to, true, &err);
  w->cut_until_ns = 0;
}

static void bring_back(world *w, uint32_t id, bool now) {
  weir_error err = WEIR_ERROR_INIT;
  process *p = &w->processes[id];
  if (!now && now_of(w) < p->back_ns) return;
  if (!p->alive) {
    say(w, "start %u again", id);
    start_process(w, id);
    if (id == FAKE_TASKS && !w->done) user_begin(w);
  } else if (p->paused) {
    say(w, "resume %u", id);
    p->paused = false;
    (void)weir_net_sim_pause(w->sim, id, false, &err);
    p->next_ns = now_of(w) + 1;
  }
}

static void life(world *w) {
  if (!w->healed) cause_faults(w);
  bool heal = !w->healed && now_of(w) >= w->heal_ns;
  if (heal) {
    weir_error err = WEIR_ERROR_INIT;
    w->healed = true;
    for (uint32_t i = 0; i < PROCESSES; i++)
      for (uint32_t k = 0; k < PROCESSES; k++)
        if (i != k) (void)weir_net_sim_slow(w->sim, i, k, 0, &err);
  }
  if (heal || (w->cut_until_ns != 0 && now_of(w) >= w->cut_until_ns))
    heal_cut(w);
  for (uint32_t i = 0; i < PROCESSES; i++)
    if (i < w->tasks || i == FAKE_TASKS) bring_back(w, i, heal);
}

static void run_laters(world *w) {
  for (;;) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < w->laters.count; i++) {
      const later *l = &w->laters.items[i];
      if (l->at_ns > now_of(w) || l->p->paused) continue;
      if (best == SIZE_MAX || l->at_ns < w->laters.items[best].at_ns ||
          (l->at_ns == w->laters.items[best].at_ns &&
           l->order < w->laters.items[best].order))
        best = i;
    }
    if (best == SIZE_MAX) return;
    later l = w->laters.items[best];
    w->laters.items[best] = w->laters.items[--w->laters.count];
    if (l.event->kind == WEIR_ENGINE_ENDED &&
        !fake_engine_may_end(l.p->engine)) {
      l.at_ns = now_of(w) + 3000000;
      (void)weir_vec_push(w->env->alloc, &w->laters, l);
      continue;
    }
    weir_task_on_engine(l.p->task, now_of(w), l.event);
    settle(l.p);
  }
}

static int64_t next_of(const world *w) {
  int64_t next = now_of(w) + kSecond / 50; /* of life() */
  for (uint32_t i = 0; i < PROCESSES; i++) {
    const process *p = &w->processes[i];
    if (p->alive && !p->paused && p->next_ns < next) next = p->next_ns;
  }
  for (size_t i = 0; i < w->laters.count; i++)
    if (!w->laters.items[i].p->paused && w->laters.items[i].at_ns < next)
      next = w->laters.items[i].at_ns;
  return next;
}

static void one_step(world *w, int64_t *life_ns) {
  weir_error err = WEIR_ERROR_INIT;
  int64_t who = -1, next = next_of(w);
  if (*life_ns < next) next = *life_ns;
  if (weir_net_sim_step(w->sim, next, &who, &err) != WEIR_OK) {
    wrong(w, "sim: %s", err.message);
    return;
  }
  if (who >= 0) settle(&w->processes[who]);
  if (now_of(w) >= *life_ns) {
    *life_ns = now_of(w) + kSecond / 50;
    life(w);
  }
  run_laters(w);
  for (uint32_t i = 0; i < PROCESSES; i++) {
    process *p = &w->processes[i];
    if (p->alive && !p->paused && p->next_ns <= now_of(w)) settle(p);
  }
  user_tick(w);
}

static weir_net_sim_options choose(world *w) {
  weir_net_sim_options o = {0};
  if (below(w, 2)) o.loss_ppm = below(w, 3000);
  if (below(w, 2)) o.late_reset_ppm = below(w, 2000);
  if (below(w, 2)) o.stall_ppm = below(w, 20000);
  if (below(w, 2)) o.unreachable_ppm = below(w, 300000);
  if (below(w, 2)) o.give_up_ppm = below(w, 500000);
  if (below(w, 2)) w->kill_ppm = below(w, 12000);
  if (below(w, 2)) w->pause_ppm = below(w, 12000);
  if (below(w, 2)) w->cut_ppm = below(w, 40000);
  if (below(w, 4) == 0) w->stuck_ppm = below(w, 20000);
  w->healed = below(w, 8) == 0; /* some runs without own faults */
  return o;
}

void world_run(uint64_t seed, world_plant plant, bool verbose,
               world_result *result) {
  world *w = calloc(1, sizeof *w);
  weir_error err = WEIR_ERROR_INIT;
  memset(result, 0, sizeof *result);
  result->ok = true;
  weir_counted_allocator_init(&w->counted, NULL);
  w->base_env.alloc = &w->counted.base;
  w->env = &w->base_env;
  w->random = seed * 2 + 1;
  w->plant = plant;
  w->verbose = verbose;
  w->result = result;
  weir_net_sim_options options = choose(w);
  if (weir_net_sim_create(&w->base_env, seed, &options, &w->sim, &err) !=
      WEIR_OK)
    wrong(w, "no network");
  w->env = weir_net_sim_env(w->sim);
  w->tasks = 2 + below(w, FAKE_TASKS - 1);
  w->heal_ns = w->healed ? -10 * kSecond : now_of(w) + 20 * kSecond;
  w->end_ns = now_of(w) + 400 * kSecond;
  int64_t life_ns = 0;
  for (uint32_t i = 0; i < w->tasks; i++) start_process(w, i);
  start_process(w, FAKE_TASKS);
  user_create(w);
  user_begin(w);
  uint64_t events = 0;
  while (result->ok && !w->done && now_of(w) < w->end_ns && events++ < 2000000)
    one_step(w, &life_ns);
  if (result->ok && !w->done)
    wrong(w, "the user waits for ever: %u steps to run, %u under way",
          w->to_run, w->under_way);
  w->heal_ns = now_of(w);
  if (result->ok) user_check_end(w, &life_ns);
  for (int i = 0; i < WEIR_NET_FAULT_COUNT; i++)
    result->net[i] = weir_net_sim_count(w->sim, (weir_net_fault)i);
  for (uint32_t i = 0; i < PROCESSES; i++) end_process(&w->processes[i]);
  weir_vec_free(w->env->alloc, &w->laters);
  weir_net_sim_release(w->sim);
  if (result->ok && atomic_load(&w->counted.live_blocks) != 0) {
    result->ok = false;
    snprintf(result->why, sizeof result->why, "%lld blocks are left",
             (long long)atomic_load(&w->counted.live_blocks));
  }
  for (uint32_t i = 0; i < w->log_count; i++) free(w->logs[i]);
  free(w);
}
