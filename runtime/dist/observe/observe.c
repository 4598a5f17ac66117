/* SPDX-License-Identifier: Apache-2.0 */
/* One call that looks at all tasks.
 *
 * The link and the looks are the control thread's; the caller sleeps until it
 * says that all looks are over, ends the threads, and reads the rows then. */
#include "runtime/dist/observe/observe.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/dist/cluster/wires.h"
#include "runtime/dist/observe/look.h"

typedef struct observer {
  const weir_env *env;
  weir_observe_options options;
  weir_wires *wires;
  weir_look *looks;
  weir_look_turn turn;
  int64_t *trips;
  weir_node_call start;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool begun;         /* control thread */
  bool over;          /* under the lock: all looks are */
  weir_status status; /* under the lock: why they were not begun */
  weir_error error;
} observer;

static int64_t now_of(const observer *o) {
  return o->env->clock->now_ns(o->env->clock->self);
}

/* ---- On the control thread */

static void end_all(observer *o, weir_status status, const weir_error *err) {
  pthread_mutex_lock(&o->lock);
  o->status = status;
  if (status != WEIR_OK) weir_error_copy(&o->error, err);
  o->over = true;
  pthread_cond_broadcast(&o->changed);
  pthread_mutex_unlock(&o->lock);
}

static void start_now(void *self, bool runs) {
  observer *o = self;
  weir_error err = WEIR_ERROR_INIT;
  weir_status s =
      runs ? WEIR_OK : weir_fail(&err, WEIR_W7027, NULL, "the threads ended");
  for (uint32_t i = 0; i < o->options.task_count && s == WEIR_OK; i++)
    s = weir_look_start(&o->looks[i], weir_wires_link(o->wires), now_of(o),
                        &err);
  o->begun = s == WEIR_OK;
  if (s != WEIR_OK) end_all(o, s, &err);
}

static void link_up(void *self, weir_peer *peer) {
  observer *o = self;
  if (peer->owner != NULL) weir_look_up(peer->owner, now_of(o));
}

static void link_message(void *self, weir_peer *peer,
                         const struct Weir__V1__Control *message) {
  observer *o = self;
  if (peer->owner != NULL) weir_look_message(peer->owner, now_of(o), message);
}

static void link_lost(void *self, weir_peer *peer, const weir_error *why) {
  observer *o = self;
  if (peer->owner != NULL) weir_look_lost(peer->owner, now_of(o), why);
}

static int64_t step(void *self, int64_t now_ns) {
  observer *o = self;
  int64_t next = INT64_MAX;
  for (uint32_t i = 0; o->begun && i < o->options.task_count; i++) {
    int64_t at = weir_look_tick(&o->looks[i], now_ns);
    if (at < next) next = at;
  }
  for (uint32_t i = 0; i < o->options.task_count; i++)
    if (o->looks[i].waits && o->turn.holder == NULL) next = now_ns;
  return next;
}

static void stepped(void *self) {
  observer *o = self;
  bool over = o->begun;
  for (uint32_t i = 0; over && i < o->options.task_count; i++)
    over = o->looks[i].phase == WEIR_LOOK_DONE;
  if (over) end_all(o, WEIR_OK, NULL);
}

/* Observers have no bulk connections. */
static weir_status bulk(void *self, uint32_t lane, uint32_t place,
                        const weir_net_frame *frame, weir_error *err) {
  (void)self, (void)lane, (void)place, (void)frame;
  return weir_fail(err, WEIR_W7011, NULL, "a bulk frame for an observer");
}

/* ---- Figures */

static int by_size(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Fills the row from the round trips. */
static void sum_up(weir_look *look) {
  weir_observe_trips *t = &look->row->trips;
  uint32_t n = look->answered;
  if (n == 0) return;
  qsort(look->trips, n, sizeof *look->trips, by_size);
  double sum = 0;
  for (uint32_t i = 0; i < n; i++) sum += (double)look->trips[i];
  t->min_ns = look->trips[0];
  t->max_ns = look->trips[n - 1];
  t->mean_ns = (int64_t)(sum / n);
  /* The nearest rank: the smallest trip that so many are not longer than. */
  t->p50_ns = look->trips[(n + 1) / 2 - 1];
  t->p99_ns = look->trips[((uint64_t)n * 99 + 99) / 100 - 1];
}

/* ---- The call */

static weir_status make(observer *o, weir_observe_row *rows, weir_error *err) {
  const weir_allocator *alloc = o->env->alloc;
  const weir_observe_options *p = &o->options;
  size_t pings = p->pings > 0 ? p->pings : 1;
  o->looks = weir_alloc_array(alloc, p->task_count, sizeof *o->looks);
  if (o->looks == NULL)
    return weir_fail_memory(err, p->task_count * sizeof *o->looks);
  o->trips = weir_alloc_array(alloc, pings * p->task_count, sizeof *o->trips);
  if (o->trips == NULL)
    return weir_fail_memory(err, pings * p->task_count * sizeof *o->trips);
  for (uint32_t i = 0; i < p->task_count; i++) {
    rows[i] = (weir_observe_row){.error = WEIR_ERROR_INIT};
    o->looks[i] = (weir_look){.options = p,
                              .alloc = alloc,
                              .task = i,
                              .row = &rows[i],
                              .turn = &o->turn,
                              .trips = o->trips + i * pings};
  }
  weir_link_self self;
  weir_wires_self(o->env, p->cluster_hash, o, &self);
  self.observes = true;
  weir_wires_options options = {.transports = p->transports,
                                .insecure = p->insecure,
                                .tls = p->tls,
                                .self = &self};
  weir_wires_calls calls = {.self = o,
                            .link = {o, link_up, link_message, link_lost},
                            step,
                            stepped,
                            bulk};
  WEIR_TRY(weir_wires_create(o->env, &options, &calls, &o->wires, err));
  return weir_wires_start(o->wires, err);
}

static weir_status look_at_all(observer *o, weir_error *err) {
  o->start = (weir_node_call){.fn = start_now, .self = o};
  weir_wires_post(o->wires, &o->start);
  pthread_mutex_lock(&o->lock);
  while (!o->over) pthread_cond_wait(&o->changed, &o->lock);
  pthread_mutex_unlock(&o->lock);
  weir_wires_stop(o->wires);
  for (uint32_t i = 0; i < o->options.task_count; i++) sum_up(&o->looks[i]);
  if (o->status != WEIR_OK) weir_error_copy(err, &o->error);
  return o->status;
}

weir_status weir_observe(const weir_env *env,
                         const weir_observe_options *options,
                         weir_observe_row *rows, weir_error *err) {
  observer o = {.env = env, .options = *options, .error = WEIR_ERROR_INIT};
  if (o.options.task_count == 0) return WEIR_OK;
  if (o.options.wait_ns == 0) o.options.wait_ns = 5000000000;
  if (o.options.pings > WEIR_OBSERVE_PINGS)
    o.options.pings = WEIR_OBSERVE_PINGS;
  pthread_mutex_init(&o.lock, NULL);
  pthread_cond_init(&o.changed, NULL);
  weir_status s = make(&o, rows, err);
  if (s == WEIR_OK) s = look_at_all(&o, err);
  weir_wires_release(o.wires);
  weir_free(env->alloc, o.looks);
  weir_free(env->alloc, o.trips);
  pthread_cond_destroy(&o.changed);
  pthread_mutex_destroy(&o.lock);
  return s;
}
