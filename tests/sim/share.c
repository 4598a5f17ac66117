/* SPDX-License-Identifier: Apache-2.0 */
/* weir-sim-share: several drivers add to one number, in one thread, by seeds.
 *
 *   weir-sim-share --kills         a driver is killed at each event of a run
 *   weir-sim-share --seeds N       seeds 1 to N: kills, pauses, cuts, restarts
 *   weir-sim-share --seed N        one of them, with all that happens
 *   weir-sim-share --plant         a bug that must be found: turns end before
 *                                  their commits are confirmed
 *
 * Three tasks hold the number, each its own copy; all copies are one number for
 * the drivers, for a step adds on all or on none. Drivers add and read in turn;
 * the last one stays to the end and reads. What must hold:
 * - a step reads the same number on all tasks (nobody sees half a step);
 * - the number is at least the steps that drivers were told to be kept, and at
 *   most those and one in doubt for each driver that was lost (none is lost,
 * none counts twice);
 * - one driver gives the first value, unless it is lost before it could;
 * - every driver that is alive comes to its end, and the tasks are free then.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/mix.h"
#include "runtime/base/vec.h"
#include "runtime/dist/driver/driver.h"
#include "runtime/dist/link/out.h"
#include "runtime/dist/task/front.h"
#include "runtime/net/sim.h"
#include "runtime/net/sim_faults.h"
#include "runtime/net/wire.h"
#include "tests/counted.h"
#include "tests/sim/adder.h"

enum { TASKS = 3, DRIVERS = 3, PROCESSES = TASKS + DRIVERS, STEPS = 4 };
static const int64_t kSecond = 1000000000;

typedef struct world world;
typedef struct process process;

typedef struct lane {
  process *p;
  uint32_t number;
  weir_engine *engine;
  weir_link_out *out;
} lane;

typedef enum phase {
  STARTS,
  MAKES, /* asks for the turn to register */
  STEPS_RUN,
  OVER
} phase;

struct process {
  world *w;
  uint32_t id;
  bool alive, paused;
  int64_t next_ns, back_ns;
  weir_transport *control, *bulk;
  weir_link *link;
  /* A task: */
  weir_front *front;
  lane lanes[WEIR_TURNS_TASKS];
  adder_store store;
  /* A driver: */
  weir_driver *driver;
  phase phase;
  enum { NO_TURN, TURN_ASKED, HAS_TURN } turn;
  bool fresh, made, under_way; /* the turn's; registers; a step runs */
  bool adds;                   /* the step or turn that comes is to add */
  uint32_t programs[2], registered, steps;
  uint64_t told, last_add, value; /* steps that added; the last one; read */
  bool failed, doubt;
};

typedef struct later {
  int64_t at_ns;
  uint64_t order;
  lane *lane;
  weir_engine_event *event;
} later;

struct world {
  weir_counted_allocator counted;
  weir_env base_env;
  const weir_env *env;
  weir_net_sim *sim;
  uint64_t random, events, orders;
  bool verbose, ok, cut, killed, plant;
  uint32_t cut_from, cut_to;
  int64_t heal_ns;
  char why[400];
  process processes[PROCESSES];
  WEIR_VEC(later) laters;
  uint64_t kept, doubts; /* of drivers that are over */
  uint32_t lost;         /* drivers */
  uint64_t last;         /* what the keeper has read at the end */
  uint32_t lives;        /* drivers that may still begin */
  uint32_t finished;     /* bits of processes */
};

static int64_t now_of(const world *w) {
  return w->env->clock->now_ns(w->env->clock->self);
}

static uint32_t below(world *w, uint32_t limit) {
  return weir_mix_below(&w->random, limit);
}

static void __attribute__((format(printf, 2, 3)))
wrong(world *w, const char *fmt, ...) {
  va_list args;
  if (!w->ok) return;
  w->ok = false;
  va_start(args, fmt);
  vsnprintf(w->why, sizeof w->why, fmt, args);
  va_end(args);
}

static void __attribute__((format(printf, 2, 3)))
say(world *w, const char *fmt, ...) {
  va_list args;
  if (!w->verbose) return;
  printf("%10.4f ", (double)now_of(w) / 1e9);
  va_start(args, fmt);
  vprintf(fmt, args);
  va_end(args);
  printf("\n");
}

/* ---- Links */

static void link_up(void *self, weir_peer *peer) {
  process *p = self;
  if (p->front != NULL) weir_front_up(p->front, now_of(p->w), peer);
  if (p->driver != NULL) weir_driver_up(p->driver, now_of(p->w), peer);
}

static void link_message(void *self, weir_peer *peer,
                         const Weir__V1__Control *m) {
  process *p = self;
  if (p->front != NULL) weir_front_message(p->front, now_of(p->w), peer, m);
  if (p->driver != NULL) weir_driver_message(p->driver, now_of(p->w), peer, m);
}

static void link_lost(void *self, weir_peer *peer, const weir_error *why) {
  process *p = self;
  say(p->w, "%u: %s is lost: %s", p->id, peer->name, why->message);
  if (p->front != NULL) weir_front_lost(p->front, now_of(p->w), peer, why);
  if (p->driver != NULL) weir_driver_lost(p->driver, now_of(p->w), peer, why);
}

static void settle(process *p) {
  int64_t now = now_of(p->w), other = INT64_MAX;
  if (!p->alive) return;
  p->next_ns = weir_link_tick(p->link, now);
  if (p->front != NULL) other = weir_front_tick(p->front, now);
  if (p->driver != NULL) other = weir_driver_tick(p->driver, now);
  int64_t again = weir_link_tick(p->link, now);
  if (again < p->next_ns) p->next_ns = again;
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

/* There are no bulk connections: nobody gives an address for them. */
static void bulk_connected(void *self, weir_connection c, weir_sv peer,
                           bool incoming) {
  (void)self, (void)c, (void)peer, (void)incoming;
}
static void bulk_frame(void *self, weir_connection c, weir_net_frame *frame) {
  (void)self, (void)c, (void)frame;
}
static void bulk_closed(void *self, weir_connection c, weir_close_reason why,
                        weir_sv text) {
  (void)self, (void)c, (void)why, (void)text;
}
static void call_connect(void *self, uint64_t tag, const char *address) {
  (void)tag, (void)address;
  wrong(((process *)self)->w, "a bulk connection");
}
static void call_close(void *self, weir_connection c) {
  (void)self, (void)c;
}
static void call_opened(void *self, weir_connection c, weir_peer *peer) {
  (void)self, (void)c, (void)peer;
}

/* ---- Tasks */

static weir_status lane_session(void *self, uint32_t places,
                                const struct weir_wire_out **out,
                                weir_error *err) {
  lane *l = self;
  WEIR_TRY(weir_link_out_create(l->p->w->env->alloc, l->p->control, l->p->bulk,
                                places, &l->out, err));
  *out = &l->out->base;
  return WEIR_OK;
}

static void lane_place(void *self, uint32_t place, weir_peer *peer) {
  weir_link_out_set(((lane *)self)->out, place, peer);
}

static void lane_over(void *self) {
  lane *l = self;
  weir_link_out_release(l->out);
  l->out = NULL;
  say(l->p->w, "%u: session of lane %u is over", l->p->id, l->number);
}

static void lane_stop(void *self) {
  (void)self;
}

static void engine_later(void *self, weir_engine_event *event) {
  lane *l = self;
  world *w = l->p->w;
  later it = {now_of(w) + 1000 + below(w, 2000000), ++w->orders, l, event};
  (void)weir_vec_push(w->env->alloc, &w->laters, it);
}

static weir_status make_lane(void *self, uint32_t number,
                             weir_engine **out_engine,
                             weir_task_calls *out_calls, weir_error *err) {
  process *p = self;
  lane *l = &p->lanes[number];
  *l = (lane){.p = p, .number = number};
  adder_calls calls = {l, engine_later};
  l->engine = adder_create(&calls, &p->store);
  if (l->engine == NULL) return weir_fail_memory(err, 1);
  *out_engine = l->engine;
  *out_calls =
      (weir_task_calls){l, lane_session, lane_place, lane_over, lane_stop};
  return WEIR_OK;
}

#include "tests/sim/share_driver.h"

/* ---- Processes */

static void start_process(world *w, uint32_t id) {
  process *p = &w->processes[id];
  weir_error err = WEIR_ERROR_INIT;
  char bound[WEIR_NET_ADDRESS_BYTES], address[32];
  weir_transport_handler c = {p, control_connected, control_frame,
                              control_closed};
  weir_transport_handler b = {p, bulk_connected, bulk_frame, bulk_closed};
  weir_transport_options co = {.cls = WEIR_NET_CONTROL};
  weir_transport_options bo = {.cls = WEIR_NET_BULK};
  *p = (process){.w = w, .id = id, .alive = true, .next_ns = now_of(w)};
  if (weir_net_sim_transport(w->sim, id, &c, &co, &p->control, &err) !=
          WEIR_OK ||
      weir_net_sim_transport(w->sim, id, &b, &bo, &p->bulk, &err) != WEIR_OK)
    wrong(w, "no transport: %s", err.message);
  weir_link_self self = {.index = id,
                         .incarnation = weir_mix_next(&w->random) | 1,
                         .cluster_hash = 99,
                         .profile = 1,
                         .protocol_min = 1,
                         .protocol_max = 1,
                         .build = "sim"};
  if (id < TASKS) snprintf(self.job, sizeof self.job, "worker");
  uint64_t job = weir_mix_next(&w->random);
  memcpy(self.job_id, &job, sizeof job);
  weir_link_events events = {p, link_up, link_message, link_lost};
  weir_link_bulk bulk = {p, p->bulk, call_connect, call_close, call_opened};
  weir_link_options options = {.probes = id >= TASKS};
  if (weir_link_create(w->env->alloc, &self, &options, &events, p->control,
                       &bulk, &p->link) != WEIR_OK)
    wrong(w, "no link");
  snprintf(address, sizeof address, "sim:%u:1", id);
  weir_front_calls calls = {p, make_lane};
  if (id >= TASKS)
    driver_begin(p);
  else if (p->control->vt->listen(p->control, weir_sv_from(address), bound,
                                  &err) != WEIR_OK ||
           weir_front_create(w->env->alloc, p->link, NULL, &calls, &p->front,
                             &err) != WEIR_OK)
    wrong(w, "no task: %s", err.message);
}

static void end_process(process *p) {
  world *w = p->w;
  if (!p->alive) return;
  p->alive = false;
  if (p->driver != NULL) driver_count(p);
  for (size_t i = 0; i < w->laters.count;) {
    if (w->laters.items[i].lane->p != p) {
      i++;
      continue;
    }
    weir_engine_event *event = w->laters.items[i].event;
    w->laters.items[i] = w->laters.items[--w->laters.count];
    event->release(event);
  }
  weir_driver_release(p->driver);
  weir_front_release(p->front);
  weir_link_release(p->link);
  weir_transport_release(p->control);
  weir_transport_release(p->bulk);
  for (uint32_t i = 0; i < WEIR_TURNS_TASKS; i++) {
    lane *l = &p->lanes[i];
    for (uint32_t k = 0; l->out != NULL && k < TASKS; k++)
      weir_link_out_set(l->out, k, NULL);
    weir_link_out_release(l->out);
    if (l->engine != NULL) l->engine->vt->release(l->engine);
  }
  p->driver = NULL;
  p->front = NULL;
}

static void kill(world *w, uint32_t id, bool silent) {
  weir_error err = WEIR_ERROR_INIT;
  process *p = &w->processes[id];
  if (!p->alive) return;
  say(w, "kill %u%s", id, silent ? " silently" : "");
  if (weir_net_sim_kill(w->sim, id, silent, &err) != WEIR_OK)
    wrong(w, "kill: %s", err.message);
  end_process(p);
  p->back_ns = now_of(w) + kSecond / 10 + below(w, 2000) * (kSecond / 1000);
}

/* ---- Time */

static void run_laters(world *w) {
  for (;;) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < w->laters.count; i++) {
      const later *l = &w->laters.items[i];
      if (l->at_ns > now_of(w)) continue;
      if (best == SIZE_MAX || l->order < w->laters.items[best].order) best = i;
    }
    if (best == SIZE_MAX) return;
    later l = w->laters.items[best];
    w->laters.items[best] = w->laters.items[--w->laters.count];
    weir_front_on_engine(l.lane->p->front, now_of(w), l.lane->number, l.event);
    settle(l.lane->p);
  }
}

static void one_step(world *w) {
  weir_error err = WEIR_ERROR_INIT;
  int64_t who = -1, next = now_of(w) + kSecond / 50;
  for (uint32_t i = 0; i < PROCESSES; i++) {
    const process *p = &w->processes[i];
    if (p->alive && !p->paused && p->next_ns < next) next = p->next_ns;
  }
  for (size_t i = 0; i < w->laters.count; i++)
    if (w->laters.items[i].at_ns < next) next = w->laters.items[i].at_ns;
  if (weir_net_sim_step(w->sim, next, &who, &err) != WEIR_OK) {
    wrong(w, "sim: %s", err.message);
    return;
  }
  if (who >= 0) {
    w->events++;
    settle(&w->processes[who]);
  }
  run_laters(w);
  for (uint32_t i = 0; i < PROCESSES; i++) {
    process *p = &w->processes[i];
    if (p->alive && !p->paused && p->next_ns <= now_of(w)) settle(p);
    if (p->alive && !p->paused && p->driver != NULL) driver_go_on(p);
  }
}

#include "tests/sim/share_runs.h"
