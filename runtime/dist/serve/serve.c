/* SPDX-License-Identifier: Apache-2.0 */
/* A task's process: wires, the task's protocol, and an engine for each driver.
 *
 * The protocol and the link belong to the control thread. Events of the engine
 * come from any thread: they wait in a list, and one call at a time is posted
 * to the control thread to read them all; those of a step that ended on that
 * thread are read in the same turn. The end: the session is given up on
 * the control thread, and when the engine has said so nothing more is posted,
 * and the threads end. */
#include "runtime/dist/serve/serve.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/dist/cluster/traffic.h"
#include "runtime/dist/cluster/wires.h"
#include "runtime/dist/link/out.h"
#include "runtime/dist/run/run.h"
#include "runtime/dist/run/run_store.h"
#include "runtime/dist/serve/observed.h"
#include "runtime/dist/task/front.h"
#include "runtime/net/wire.h"
#include "runtime/net/wire_error.h"

/* For the answer to StopTask to leave. */
static const int64_t kLastWordsNs = 100000000;

/* A session's part of the process; one that was made stays. */
typedef struct serve_lane {
  weir_serve *serve;
  uint32_t number;
  weir_engine *engine;
  weir_link_out *out;                   /* of the session */
  weir_traffic from_driver, from_tasks; /* of the session */
} serve_lane;

struct weir_serve {
  const weir_env *env;
  weir_serve_options options;
  char address[WEIR_NET_ADDRESS_BYTES];
  weir_wires *wires;
  weir_front *front;
  weir_run_stores *stores;
  serve_lane *lanes[WEIR_TURNS_TASKS]; /* control: made; bulk: read */
  weir_node_call read, shut;
  /* Of the control thread: */
  int64_t created_ns;
  int64_t ends_ns;     /* an observer has asked for it; INT64_MAX: none has */
  int64_t until_ns;    /* for the first session to begin; INT64_MAX: no end */
  uint32_t drivers;    /* connected */
  weir_error given_up; /* why the last driver did; id "": none did */
  weir_error late;     /* no driver came */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  /* Under the lock: */
  weir_engine_event *first, *last;
  bool posted;  /* |read| is under way */
  bool turning; /* |control| is the thread of the protocol */
  pthread_t control;
  bool stop, idle;
};

static int64_t now_of(const weir_serve *s) {
  return s->env->clock->now_ns(s->env->clock->self);
}

static void say(const weir_serve *s, const char *text) {
  if (s->options.log != NULL) s->options.log(s->options.log_self, text);
}

static void tell(const weir_serve *s, weir_process_state state,
                 const char *peer, const char *text) {
  weir_states_tell(&s->options.states, state, peer, text);
}

/* ---- The engine's events */

static weir_engine_event *next_event(weir_serve *s, bool posted) {
  pthread_mutex_lock(&s->lock);
  weir_engine_event *event = s->first;
  if (event != NULL)
    s->first = event->next;
  else if (posted)
    s->posted = false;
  pthread_mutex_unlock(&s->lock);
  return event;
}

static void read_events(void *self, bool runs) {
  weir_serve *s = self;
  weir_engine_event *event;
  while ((event = next_event(s, true)) != NULL)
    if (runs)
      weir_front_on_engine(s->front, now_of(s), event->lane, event);
    else
      event->release(event);
}

/* In each turn of the control thread. */
static void read_own_events(weir_serve *s) {
  weir_engine_event *event;
  if (!s->turning) {
    pthread_mutex_lock(&s->lock);
    s->control = pthread_self();
    s->turning = true;
    pthread_mutex_unlock(&s->lock);
  }
  while ((event = next_event(s, false)) != NULL)
    weir_front_on_engine(s->front, now_of(s), event->lane, event);
}

static void post_event(void *self, weir_engine_event *event) {
  const serve_lane *lane = self;
  weir_serve *s = lane->serve;
  event->next = NULL;
  event->lane = lane->number;
  pthread_mutex_lock(&s->lock);
  if (s->first == NULL)
    s->first = event;
  else
    s->last->next = event;
  s->last = event;
  bool here = s->turning && pthread_equal(s->control, pthread_self());
  bool post = !s->posted && !here;
  s->posted |= post;
  pthread_mutex_unlock(&s->lock);
  if (post) weir_wires_post(s->wires, &s->read);
}

/* ---- The task's calls */

static weir_status session(void *self, uint32_t places,
                           const struct weir_wire_out **out, weir_error *err) {
  serve_lane *lane = self;
  weir_serve *s = lane->serve;
  WEIR_TRY(weir_link_out_create(
      s->env->alloc, weir_wires_transport(s->wires, WEIR_NET_CONTROL),
      weir_wires_transport(s->wires, WEIR_NET_BULK), places, &lane->out, err));
  *out = &lane->out->base;
  s->until_ns = INT64_MAX;
  weir_traffic_clear(&lane->from_driver);
  weir_traffic_clear(&lane->from_tasks);
  say(s, "a session has begun");
  s->given_up = (weir_error)WEIR_ERROR_INIT;
  tell(s, WEIR_PROCESS_SESSION_BEGUN, "", "");
  return WEIR_OK;
}

static void place(void *self, uint32_t at, weir_peer *peer) {
  serve_lane *lane = self;
  weir_link_out_set(lane->out, at, peer);
  if (peer != NULL) weir_wires_place(lane->serve->wires, peer, at);
}

static void session_over(void *self) {
  serve_lane *lane = self;
  weir_serve *s = lane->serve;
  weir_link_out_release(lane->out);
  lane->out = NULL;
  char driver[WEIR_TRAFFIC_TEXT], tasks[WEIR_TRAFFIC_TEXT], text[200];
  snprintf(text, sizeof text,
           "the session is over: %s came from the driver, %s from other tasks",
           weir_traffic_print(&lane->from_driver, driver),
           weir_traffic_print(&lane->from_tasks, tasks));
  say(s, text);
  tell(s, WEIR_PROCESS_SESSION_OVER, "", s->given_up.message);
}

static void decided(void *self, uint64_t step, bool commit) {
  char text[96];
  snprintf(text, sizeof text, "step %" PRIu64 " is %s", step,
           commit ? "committed, as on another task"
                  : "aborted: no task has committed it");
  say(((const serve_lane *)self)->serve, text);
}

static void stop_process(void *self) {
  weir_serve_stop(((const serve_lane *)self)->serve);
}

/* ---- The link's events */

static bool is_driver(const weir_peer *peer) {
  return peer->job[0] == '\0' && !peer->observes;
}

/* Nobody else hears of observers. */
static void observed(weir_serve *s, weir_peer *peer,
                     const Weir__V1__Control *message) {
  const weir_serve_options *o = &s->options;
  char text[WEIR_TASK_NAME_BYTES + 64];
  weir_observed_process process = {
      .alloc = s->env->alloc,
      .front = s->front,
      .version = o->version,
      .memory_bytes = o->memory_bytes != NULL ? o->memory_bytes() : 0,
      .uptime_ns = (uint64_t)(now_of(s) - s->created_ns)};
  if (!weir_observed_answer(&process, peer, message)) return;
  snprintf(text, sizeof text, "ends: %s has asked for it", peer->name);
  say(s, text);
  s->ends_ns = now_of(s) + kLastWordsNs;
}

static void link_up(void *self, weir_peer *peer) {
  weir_serve *s = self;
  if (peer->observes) return;
  s->drivers += is_driver(peer);
  tell(s, WEIR_PROCESS_PEER_JOINED, peer->name, peer->address);
  weir_front_up(s->front, now_of(s), peer);
  read_own_events(s);
}

static void link_message(void *self, weir_peer *peer,
                         const Weir__V1__Control *message) {
  weir_serve *s = self;
  if (peer->observes) {
    observed(s, peer, message);
    return;
  }
  if (message->body_case == WEIR__V1__CONTROL__BODY_END && is_driver(peer) &&
      weir_wire_error_is(message->end->why)) {
    char text[560];
    (void)weir_wire_error_get(message->end->why, &s->given_up);
    snprintf(text, sizeof text, "the driver gives up: %.500s",
             s->given_up.message);
    say(s, text);
  }
  serve_lane *lane = s->lanes[peer->lane];
  weir_traffic_control(is_driver(peer) ? &lane->from_driver : &lane->from_tasks,
                       message);
  weir_front_message(s->front, now_of(s), peer, message);
  read_own_events(s); /* a small step has ended: its reply goes at once */
}

static void link_lost(void *self, weir_peer *peer, const weir_error *why) {
  weir_serve *s = self;
  char text[WEIR_TASK_NAME_BYTES + 560];
  if (peer->observes) return;
  s->drivers -= is_driver(peer);
  snprintf(text, sizeof text, "%s is lost: %.500s", peer->name, why->message);
  say(s, text);
  tell(s, WEIR_PROCESS_PEER_LOST, peer->name, why->message);
  weir_front_lost(s->front, now_of(s), peer, why);
  read_own_events(s); /* the link may have reported it behind the step */
}

static void link_refused(void *self, const char *text) {
  say(self, text);
}

static weir_status bulk(void *self, uint32_t number, uint32_t at,
                        const weir_net_frame *frame, weir_error *err) {
  serve_lane *lane = ((weir_serve *)self)->lanes[number];
  weir_traffic_bulk(
      at == WEIR_PEER_DRIVER ? &lane->from_driver : &lane->from_tasks, frame);
  return weir_run_engine_bulk(lane->engine, at, frame, err);
}

static void no_driver(weir_serve *s) {
  const weir_serve_options *o = &s->options;
  const char *why = s->drivers > 0
                        ? "one is connected and waits for other tasks"
                        : "none has connected";
  bool gave_up = s->given_up.id[0] != '\0';
  s->until_ns = INT64_MAX;
  weir_fail(&s->late, WEIR_W7025, NULL,
            "no driver has begun a session with %s:%" PRIu32
            " at %s within %.1f s: %s%.350s",
            o->job, o->index, s->address, (double)o->driver_ns / 1e9,
            gave_up ? "the last one gave up: " : why,
            gave_up ? s->given_up.message : "");
  weir_serve_stop(s);
}

static int64_t step(void *self, int64_t now_ns) {
  weir_serve *s = self;
  read_own_events(s);
  bool again = false;
  for (uint32_t i = 0; i < WEIR_TURNS_TASKS && s->lanes[i] != NULL; i++)
    again |= weir_link_out_tick(s->lanes[i]->out);
  if (again) return now_ns;
  if (now_ns >= s->until_ns) no_driver(s);
  if (now_ns >= s->ends_ns) {
    s->ends_ns = INT64_MAX;
    weir_serve_stop(s);
  }
  int64_t next = weir_front_tick(s->front, now_ns);
  if (s->ends_ns < next) next = s->ends_ns;
  return s->until_ns < next ? s->until_ns : next;
}

/* Notes whether the task is free once it is to stop: nothing follows then. What
 * the turn itself has ended since is for the next turn, which comes at once. */
static void stepped(void *self) {
  weir_serve *s = self;
  pthread_mutex_lock(&s->lock);
  s->idle = weir_front_is_free(s->front);
  if (s->idle && s->stop) pthread_cond_broadcast(&s->changed);
  bool post = s->first != NULL && !s->posted;
  s->posted |= post;
  pthread_mutex_unlock(&s->lock);
  if (post) weir_wires_post(s->wires, &s->read);
}

/* ---- Life */

/* One that was made before memory ran out is used again. */
static weir_status make_lane(void *self, uint32_t number,
                             weir_engine **out_engine,
                             weir_task_calls *out_calls, weir_error *err) {
  weir_serve *s = self;
  const weir_serve_options *o = &s->options;
  serve_lane *lane = s->lanes[number];
  if (lane == NULL) {
    lane = weir_alloc_array(s->env->alloc, 1, sizeof *lane);
    if (lane == NULL) return weir_fail_memory(err, sizeof *lane);
    lane->serve = s;
    lane->number = number;
    s->lanes[number] = lane;
  }
  weir_run_engine_options run = {.threads = o->threads,
                                 .registry = o->registry,
                                 .events = {lane, post_event},
                                 .checkpoint_root = o->checkpoint_root,
                                 .stores = s->stores};
  if (lane->engine == NULL)
    WEIR_TRY(weir_run_engine_create(s->env, &run, &lane->engine, err));
  *out_engine = lane->engine;
  *out_calls = (weir_task_calls){lane,         session,      place,
                                 session_over, stop_process, decided};
  return WEIR_OK;
}

static void release_lane(serve_lane *lane) {
  if (lane == NULL) return;
  if (lane->engine != NULL) lane->engine->vt->release(lane->engine);
  weir_free(lane->serve->env->alloc, lane);
}

static weir_status make(weir_serve *s, weir_error *err) {
  const weir_serve_options *o = &s->options;
  weir_link_self self;
  weir_wires_self(s->env, o->cluster_hash, s, &self);
  snprintf(self.job, sizeof self.job, "%s", o->job);
  self.index = o->index;
  weir_wires_options options = {.transports = o->transports,
                                .insecure = o->insecure,
                                .tls = o->tls,
                                .self = &self,
                                .link.heartbeat_ns = o->heartbeat_ns};
  weir_wires_calls calls = {
      .self = s,
      .link = {s, link_up, link_message, link_lost, link_refused},
      step,
      stepped,
      bulk};
  WEIR_TRY(weir_wires_create(s->env, &options, &calls, &s->wires, err));
  WEIR_TRY(weir_wires_listen(s->wires, o->address, s->address, err));
  WEIR_TRY(weir_run_stores_create(s->env->alloc, &s->stores, err));
  weir_task_options task = {.start_ns = o->start_ns};
  weir_front_calls lanes = {s, make_lane};
  return weir_front_create(s->env->alloc, weir_wires_link(s->wires), &task,
                           &lanes, &s->front, err);
}

weir_status weir_serve_create(const weir_env *env,
                              const weir_serve_options *options,
                              weir_serve **out_serve, weir_error *err) {
  *out_serve = NULL;
  if (strlen(options->job) >= WEIR_JOB_BYTES || options->job[0] == '\0' ||
      strlen(options->address) >= WEIR_NET_ADDRESS_BYTES - 8)
    return weir_fail(err, WEIR_W7002, NULL,
                     "a task without a name, or with a long name or address");
  weir_serve *s = weir_alloc_array(env->alloc, 1, sizeof *s);
  if (s == NULL) return weir_fail_memory(err, sizeof *s);
  s->env = env;
  s->options = *options;
  s->idle = true;
  s->until_ns = INT64_MAX;
  s->ends_ns = INT64_MAX;
  s->created_ns = now_of(s);
  s->given_up = s->late = (weir_error)WEIR_ERROR_INIT;
  s->read = (weir_node_call){.fn = read_events, .self = s};
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->changed, NULL);
  weir_status st = make(s, err);
  if (st != WEIR_OK)
    weir_serve_release(s);
  else
    *out_serve = s;
  return st;
}

const char *weir_serve_address(const weir_serve *serve) {
  return serve->address;
}

static void shut(void *self, bool runs) {
  weir_serve *s = self;
  if (runs) weir_front_shut(s->front);
}

weir_status weir_serve_run(weir_serve *s, weir_error *err) {
  if (s->options.driver_ns > 0) s->until_ns = now_of(s) + s->options.driver_ns;
  WEIR_TRY(weir_wires_start(s->wires, err));
  pthread_mutex_lock(&s->lock);
  while (!s->stop) pthread_cond_wait(&s->changed, &s->lock);
  s->idle = false;
  pthread_mutex_unlock(&s->lock);
  s->shut = (weir_node_call){.fn = shut, .self = s};
  weir_wires_post(s->wires, &s->shut);
  pthread_mutex_lock(&s->lock);
  while (!s->idle) pthread_cond_wait(&s->changed, &s->lock);
  pthread_mutex_unlock(&s->lock);
  weir_wires_stop(s->wires);
  if (s->late.id[0] == '\0') return WEIR_OK;
  weir_error_copy(err, &s->late);
  return s->late.code;
}

void weir_serve_stop(weir_serve *s) {
  pthread_mutex_lock(&s->lock);
  s->stop = true;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
}

void weir_serve_release(weir_serve *s) {
  weir_engine_event *event;
  if (s == NULL) return;
  while ((event = next_event(s, false)) != NULL) event->release(event);
  weir_front_release(s->front);
  for (uint32_t i = 0; i < WEIR_TURNS_TASKS; i++) release_lane(s->lanes[i]);
  weir_run_stores_release(s->stores);
  weir_wires_release(s->wires);
  pthread_cond_destroy(&s->changed);
  pthread_mutex_destroy(&s->lock);
  weir_free(s->env->alloc, s);
}
