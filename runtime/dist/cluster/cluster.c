/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's process: threads, driver, and calls that wait.
 *
 * All of the driver and the link is the control thread's. A caller posts his
 * call and sleeps; its end is told under the lock. Before a call begins the
 * driver does all that is due, so no call begins in a session that has failed
 * in silence.
 *
 * Invariant: every op under way ends. Either the driver tells it (it tells each
 * of its own, at the latest when the session is over) or the rendezvous does
 * (it is aborted then). */
#include "runtime/dist/cluster/cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernels/profile.h"
#include "runtime/dist/channel/exchange.h"
#include "runtime/dist/cluster/cluster_ask.h"
#include "runtime/dist/cluster/cluster_internal.h"
#include "runtime/dist/cluster/cluster_programs.h"
#include "runtime/dist/cluster/cluster_runs.h"
#include "runtime/dist/cluster/cluster_turn.h"
#include "runtime/dist/cluster/cluster_vars.h"

int64_t weir_dist_now(const weir_dist *d) {
  return d->env->clock->now_ns(d->env->clock->self);
}

/* ---- Calls */

weir_dist_op *weir_dist_find(weir_dist *d, weir_dist_kind kind,
                             uint64_t number) {
  weir_dist_op *op = d->ops;
  while (op != NULL && (op->kind != kind || op->number != number))
    op = op->next;
  return op;
}

void weir_dist_done(weir_dist_op *op, weir_status status,
                    const weir_error *err) {
  op->status = status;
  if (status != WEIR_OK) weir_error_copy(&op->error, err);
  op->done = true;
  pthread_cond_broadcast(&op->dist->changed);
}

static void list(weir_dist_op *op) {
  op->listed = true;
  op->next = op->dist->ops;
  op->dist->ops = op;
}

static void begin_now(void *self, bool runs) {
  weir_dist_op *op = self;
  weir_dist *d = op->dist;
  weir_error err = WEIR_ERROR_INIT;
  if (runs) (void)weir_driver_tick(d->driver, weir_dist_now(d));
  pthread_mutex_lock(&d->lock);
  bool over = d->over || !runs;
  if (over && d->over)
    weir_dist_done(op, d->error.code, &d->error);
  else if (over)
    weir_dist_done(op, weir_fail(&err, WEIR_W7027, NULL, "the threads ended"),
                   &err);
  else if (op->kind != WEIR_DIST_PLAIN)
    list(op);
  pthread_mutex_unlock(&d->lock);
  if (over) return;
  weir_status s = op->start(op, &err);
  if (s == WEIR_OK && op->kind != WEIR_DIST_PLAIN) return;
  pthread_mutex_lock(&d->lock);
  weir_dist_done(op, s, &err);
  pthread_mutex_unlock(&d->lock);
}

static void make_call(weir_dist *d, weir_dist_op *op) {
  op->dist = d;
  op->error = (weir_error)WEIR_ERROR_INIT;
  op->call = (weir_node_call){.fn = begin_now, .self = op};
}

void weir_dist_begin(weir_dist *d, weir_dist_op *op) {
  make_call(d, op);
  weir_wires_post(d->wires, &op->call);
}

/* Steps that follow each other closely need no other thread (node.h): the first
 * is posted, the second offers when it has ended, the third stands in. */
void weir_dist_begin_soon(weir_dist *d, weir_dist_op *op,
                          weir_node_over (*over)(void *op)) {
  enum { SOON_NS = 500000 };
  make_call(d, op);
  pthread_mutex_lock(&d->lock);
  op->soon = weir_dist_now(d) - d->ended_ns < SOON_NS;
  pthread_mutex_unlock(&d->lock);
  if (op->soon && weir_wires_stand_in(d->wires, &op->call, over, op))
    op->soon = false; /* nothing to offer: it is here already */
  else
    weir_wires_post(d->wires, &op->call);
}

weir_node_over weir_dist_over(const weir_dist_op *op, bool over) {
  const weir_dist_op *first = op->dist->ops;
  if (!over) return WEIR_NODE_GOES_ON;
  bool alone = first == NULL || (first == op && op->next == NULL);
  return alone ? WEIR_NODE_OVER : WEIR_NODE_OVER_BUSY;
}

static weir_node_over call_is_over(void *self) {
  weir_dist_op *op = self;
  pthread_mutex_lock(&op->dist->lock);
  weir_node_over over = weir_dist_over(op, op->done);
  pthread_mutex_unlock(&op->dist->lock);
  return over;
}

void weir_dist_leave(weir_dist *d, weir_dist_op *op) {
  weir_dist_op **at = &d->ops;
  if (!op->listed) return;
  while (*at != op) at = &(*at)->next;
  *at = op->next;
  op->listed = false;
}

void weir_dist_ended(weir_dist *d, const weir_dist_op *op) {
  pthread_mutex_lock(&d->lock);
  d->ended_ns = weir_dist_now(d);
  bool offers = op->soon && d->ops == NULL;
  pthread_mutex_unlock(&d->lock);
  if (offers) weir_wires_offer(d->wires);
}

weir_status weir_dist_call(weir_dist *d, weir_dist_op *op, weir_error *err) {
  if (op->kind == WEIR_DIST_PLAIN)
    weir_dist_begin_soon(d, op, call_is_over);
  else
    weir_dist_begin(d, op);
  pthread_mutex_lock(&d->lock);
  while (!op->done) pthread_cond_wait(&d->changed, &d->lock);
  weir_dist_leave(d, op);
  pthread_mutex_unlock(&d->lock);
  if (op->status != WEIR_OK) weir_error_copy(err, &op->error);
  return op->status;
}

void weir_dist_give_up(weir_dist *d, const weir_error *why) {
  if (d->ending.id[0] == '\0') weir_error_copy(&d->ending, why);
  weir_driver_end(d->driver, false);
}

typedef struct blame_op {
  weir_dist_op base;
  uint32_t place;
} blame_op;

static weir_status start_blame(weir_dist_op *base, weir_error *err) {
  const blame_op *op = (const blame_op *)base;
  weir_dist *d = base->dist;
  const weir_peer *peer = d->peers[op->place];
  const char *why = "a frame to it could not be sent";
  if (peer != NULL && peer->state == WEIR_PEER_PROBED) why = peer->last.message;
  weir_status s = weir_fail(err, WEIR_W7020, NULL, "%s is lost: %.400s",
                            peer != NULL ? peer->name : "a task", why);
  weir_dist_give_up(d, err);
  return s;
}

weir_status weir_dist_blame(weir_dist *d, uint32_t place, weir_error *err) {
  blame_op op = {.base = {.start = start_blame}, .place = place};
  if (strcmp(err->id, "W7001") != 0) return err->code;
  *err = (weir_error)WEIR_ERROR_INIT;
  return weir_dist_call(d, &op.base, err);
}

/* ---- The driver's callbacks; control thread */

static void say(const weir_dist *d, const char *text) {
  if (d->options.log != NULL) d->options.log(d->options.log_self, text);
}

/* The cause of the end, in place of "the session is over". */
const weir_error *weir_dist_cause(const weir_dist *d, const weir_error *err) {
  return err != NULL && d->ending.id[0] != '\0' ? &d->ending : err;
}

static void tell(const weir_dist *d, weir_process_state state, const char *peer,
                 const char *text) {
  weir_states_tell(&d->options.states, state, peer, text);
}

static void on_started(void *self, const weir_error *err) {
  weir_dist *d = self;
  if (err == NULL) tell(d, WEIR_PROCESS_SESSION_BEGUN, "", "");
  pthread_mutex_lock(&d->lock);
  d->started = err == NULL;
  pthread_cond_broadcast(&d->changed);
  pthread_mutex_unlock(&d->lock);
}

static void on_stepped(void *self, const weir_driver_result *result,
                       const weir_error *err) {
  weir_dist_stepped(self, result, weir_dist_cause(self, err));
}

static void on_variables(void *self, uint64_t request, const weir_error *err) {
  weir_dist_variables(self, request, weir_dist_cause(self, err));
}

static void on_replied(void *self, uint64_t request,
                       const struct Weir__V1__CheckpointReply *reply,
                       const weir_error *err) {
  weir_dist_replied(self, request, reply, weir_dist_cause(self, err));
}

static void on_over(void *self, const weir_error *err) {
  weir_dist *d = self;
  weir_error why = WEIR_ERROR_INIT;
  if (d->ending.id[0] != '\0') err = &d->ending;
  if (err != NULL)
    weir_error_copy(&why, err);
  else
    weir_fail(&why, WEIR_W7027, NULL, "the session of the cluster is closed");
  if (err != NULL) say(d, why.message);
  tell(d, WEIR_PROCESS_SESSION_OVER, "", err != NULL ? why.message : "");
  pthread_mutex_lock(&d->lock);
  d->over = true;
  d->error = why;
  pthread_cond_broadcast(&d->changed);
  pthread_mutex_unlock(&d->lock);
  weir_exchange_abort(d->values, &why);
}

static void on_place(void *self, uint32_t place, weir_peer *peer) {
  weir_dist *d = self;
  char text[WEIR_TASK_NAME_BYTES + WEIR_NET_ADDRESS_BYTES + 16];
  weir_link_out_set(d->out, place, peer);
  if (peer != NULL) {
    snprintf(text, sizeof text, "%s at %s is up", peer->name, peer->address);
    say(d, text);
    tell(d, WEIR_PROCESS_PEER_JOINED, peer->name, peer->address);
  }
  d->peers[place] = peer;
}

static weir_status on_value(void *self, uint32_t place,
                            const struct Weir__V1__Control *message,
                            weir_error *err) {
  weir_dist *d = self;
  return weir_exchange_on_control(d->values, place, message, err);
}

static weir_status on_blob(void *self, uint32_t place, const uint8_t *name,
                           uint32_t number, weir_error *err) {
  weir_dist *d = self;
  return weir_dist_blobs_send(&d->blobs, d->values, place, name, number, err);
}

static void on_drop(void *self, uint64_t step, const weir_error *why) {
  weir_dist *d = self;
  weir_exchange_drop(d->values, step, weir_dist_cause(d, why));
}

/* ---- Events of the wires */

static void link_up(void *self, weir_peer *peer) {
  weir_dist *d = self;
  weir_driver_up(d->driver, weir_dist_now(d), peer);
}

static void link_message(void *self, weir_peer *peer,
                         const struct Weir__V1__Control *message) {
  weir_dist *d = self;
  weir_traffic_control(&d->traffic, message);
  weir_driver_message(d->driver, weir_dist_now(d), peer, message);
}

static void link_lost(void *self, weir_peer *peer, const weir_error *why) {
  weir_dist *d = self;
  tell(d, WEIR_PROCESS_PEER_LOST, peer->name, why->message);
  weir_driver_lost(d->driver, weir_dist_now(d), peer, why);
}

/* Asks whether waiting for the tasks makes sense; returns when next. */
static int64_t look_while_starting(weir_dist *d, int64_t now_ns) {
  const int64_t every_ns = 10000000;
  const weir_dist_options *o = &d->options;
  weir_error why = WEIR_ERROR_INIT;
  if (o->while_starting == NULL || d->started || d->over) return INT64_MAX;
  if (o->while_starting(o->while_starting_self, &why) == WEIR_OK)
    return now_ns + every_ns;
  weir_dist_give_up(d, &why);
  return now_ns;
}

static int64_t step(void *self, int64_t now_ns) {
  weir_dist *d = self;
  if (weir_link_out_tick(d->out)) return now_ns;
  int64_t watch = weir_dist_watch(d, now_ns);
  int64_t look = look_while_starting(d, now_ns);
  int64_t next = weir_driver_tick(d->driver, now_ns);
  if (look < next) next = look;
  return watch < next ? watch : next;
}

static void stepped(void *self) {
  weir_dist *d = self;
  if (!weir_driver_parted(d->driver)) return;
  pthread_mutex_lock(&d->lock);
  if (!d->parted) pthread_cond_broadcast(&d->changed);
  d->parted = true;
  pthread_mutex_unlock(&d->lock);
}

static weir_status bulk(void *self, uint32_t lane, uint32_t place,
                        const weir_net_frame *frame, weir_error *err) {
  weir_dist *d = self;
  (void)lane; /* there is one */
  weir_traffic_bulk(&d->traffic, frame);
  return weir_exchange_on_bulk(d->values, place, frame, err);
}

/* ---- Open and close */

static weir_status make_wires(weir_dist *d, uint64_t *out_profile,
                              weir_error *err) {
  const weir_dist_options *o = &d->options;
  weir_link_self self;
  weir_wires_self(d->env, o->cluster_hash, d, &self);
  memcpy(self.job_id, o->job_id, sizeof self.job_id);
  *out_profile = self.profile;
  weir_wires_options options = {.transports = o->transports,
                                .insecure = o->insecure,
                                .tls = o->tls,
                                .self = &self,
                                .link.heartbeat_ns = o->heartbeat_ns,
                                .link.probes = true};
  weir_wires_calls calls = {.self = d,
                            .link = {d, link_up, link_message, link_lost},
                            step,
                            stepped,
                            bulk};
  return weir_wires_create(d->env, &options, &calls, &d->wires, err);
}

static weir_status make(weir_dist *d, weir_error *err) {
  const weir_dist_options *o = &d->options;
  uint64_t profile = 0;
  WEIR_TRY(make_wires(d, &profile, err));
  d->peers = weir_alloc_array(d->env->alloc, o->task_count, sizeof *d->peers);
  if (d->peers == NULL)
    return weir_fail_memory(err, o->task_count * sizeof *d->peers);
  WEIR_TRY(weir_link_out_create(
      d->env->alloc, weir_wires_transport(d->wires, WEIR_NET_CONTROL),
      weir_wires_transport(d->wires, WEIR_NET_BULK), o->task_count, &d->out,
      err));
  weir_exchange_options values = {
      .rendezvous = {.epoch = o->epoch, .tasks = o->task_count},
      .out = &d->out->base};
  for (uint32_t i = 0; i < o->task_count; i++)
    values.rendezvous.crc |= !weir_wires_is_here(o->tasks[i].address);
  WEIR_TRY(weir_exchange_create(d->env, &values, &d->values, err));
  weir_driver_options options = {.epoch = o->epoch,
                                 .profile = profile,
                                 .tasks = o->tasks,
                                 .task_count = o->task_count,
                                 .start_ns = o->start_ns,
                                 .step_ns = o->step_ns,
                                 .share = o->share};
  weir_driver_calls calls = {d,          on_started,   weir_dist_registered,
                             on_stepped, on_variables, on_over,
                             on_place,   on_value,     on_blob,
                             on_drop,    on_replied,   weir_dist_turned};
  return weir_driver_create(d->env->alloc, weir_wires_link(d->wires),
                            weir_dist_now(d), &options, &calls, &d->driver,
                            err);
}

static weir_status wait_for_start(weir_dist *d, weir_error *err) {
  WEIR_TRY(weir_wires_start(d->wires, err));
  pthread_mutex_lock(&d->lock);
  while (!d->started && !d->over) pthread_cond_wait(&d->changed, &d->lock);
  weir_status s = d->over ? d->error.code : WEIR_OK;
  if (s != WEIR_OK) weir_error_copy(err, &d->error);
  pthread_mutex_unlock(&d->lock);
  return s;
}

/* The tasks' profiles and ours must have one that all can run, and it is the
 * one that the driver has told them. */
static weir_status check_profile(weir_dist_op *op, weir_error *err) {
  weir_dist *d = op->dist;
  uint64_t common = weir_driver_profile(d->driver);
  d->profile = common;
  for (uint32_t i = 0; i < d->options.task_count; i++) {
    const weir_peer *peer = d->peers[i];
    if (peer == NULL || weir_profile_common(common, peer->profile) == common)
      continue;
    char a[WEIR_PROFILE_TEXT], b[WEIR_PROFILE_TEXT];
    return weir_fail(err, WEIR_W7023, NULL,
                     "%s computes with %s and others with %s: there is no "
                     "common set of kernels",
                     peer->name, weir_profile_text(peer->profile, a),
                     weir_profile_text(common, b));
  }
  return WEIR_OK;
}

weir_status weir_dist_open(const weir_env *env,
                           const weir_dist_options *options,
                           weir_dist **out_dist, weir_error *err) {
  weir_dist *d = weir_alloc_array(env->alloc, 1, sizeof *d);
  *out_dist = NULL;
  if (d == NULL) return weir_fail_memory(err, sizeof *d);
  d->env = env;
  d->options = *options;
  d->error = d->ending = (weir_error)WEIR_ERROR_INIT;
  if (d->options.epoch == 0) d->options.epoch = 1;
  d->shared = options->share != NULL && options->share[0] != '\0';
  pthread_mutex_init(&d->lock, NULL);
  pthread_cond_init(&d->changed, NULL);
  weir_dist_gate_init(&d->gate);
  weir_dist_blobs_init(&d->blobs, env);
  weir_status s = make(d, err);
  if (s == WEIR_OK) s = wait_for_start(d, err);
  weir_dist_op op = {.start = check_profile};
  if (s == WEIR_OK) s = weir_dist_call(d, &op, err);
  d->options.tasks = NULL;
  d->options.share = NULL;
  if (s != WEIR_OK)
    weir_dist_close(d, false);
  else
    *out_dist = d;
  return s;
}

uint64_t weir_dist_profile(const weir_dist *dist) {
  return dist->profile;
}

static weir_status start_nothing(weir_dist_op *op, weir_error *err) {
  return (void)op, (void)err, WEIR_OK;
}

/* No call begins before all that is due was done (begin_now). */
weir_status weir_dist_check(weir_dist *dist, weir_error *err) {
  weir_dist_op op = {.start = start_nothing};
  return weir_dist_call(dist, &op, err);
}

weir_traffic *weir_dist_traffic(weir_dist *dist) {
  return &dist->traffic;
}

typedef struct end_op {
  weir_dist_op base;
  bool stop;
} end_op;

static weir_status end_session(weir_dist_op *op, weir_error *err) {
  (void)err;
  weir_driver_end(op->dist->driver, ((end_op *)op)->stop);
  return WEIR_OK;
}

static void end(weir_dist *d, bool stop) {
  end_op op = {.base = {.start = end_session}, .stop = stop};
  bool ends = weir_dist_call(d, &op.base, NULL) == WEIR_OK;
  pthread_mutex_lock(&d->lock);
  while ((ends || d->over) && !d->parted)
    pthread_cond_wait(&d->changed, &d->lock);
  pthread_mutex_unlock(&d->lock);
}

void weir_dist_close(weir_dist *d, bool stop_tasks) {
  if (d == NULL) return;
  if (d->started) end(d, stop_tasks);
  if (d->wires != NULL) weir_wires_stop(d->wires);
  weir_driver_release(d->driver);
  weir_wires_release(d->wires);
  weir_exchange_release(d->values);
  weir_link_out_release(d->out);
  weir_free(d->env->alloc, d->peers);
  weir_dist_blobs_release(&d->blobs);
  weir_dist_gate_release(&d->gate);
  pthread_cond_destroy(&d->changed);
  pthread_mutex_destroy(&d->lock);
  weir_free(d->env->alloc, d);
}
