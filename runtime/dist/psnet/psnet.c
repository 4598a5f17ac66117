/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/psnet/psnet.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/table.h"
#include "runtime/dist/psnet/psnet_address.h"
#include "runtime/dist/psnet/psnet_linger.h"
#include "runtime/dist/psnet/psnet_link.h"
#include "runtime/dist/psnet/psnet_transfer.h"

/* The tasks of a job and the links between them.
 *
 * Each other task has a seat; in it is the link to it, while there is one, and
 * the attempt to dial it. Seats are the control thread's, but for the link,
 * which the thread of bulk frames looks up under the lock and holds meanwhile.
 *
 * Values end on any thread. A transfer that is over goes to a list, and so does
 * a link that nothing holds; one call is posted to the control thread to read
 * both. Nothing is allocated for it. */

/* Between a link's end and the next attempt. */
static const int64_t kSecond = 1000000000, kPauseLeast = 20000000,
                     kPauseMost = 1000000000;
/* A job that is over is gone by then. */
static const int64_t kRefused = 10 * INT64_C(1000000000);

static const char *const kJobs[] = {[WEIR_PS_CHIEF] = "chief",
                                    [WEIR_PS_SERVER] = "ps",
                                    [WEIR_PS_WORKER] = "worker"};
WEIR_TABLE_OF(kJobs, WEIR_PS_WORKER + 1);

int64_t weir_ps_net_now(const weir_ps_net *net) {
  return net->env->clock->now_ns(net->env->clock->self);
}

weir_ps_seat *weir_ps_net_seat(const weir_ps_net *net, weir_ps_task task) {
  uint32_t servers = net->config.servers, workers = net->config.workers;
  if (task.role == WEIR_PS_CHIEF && task.index == 0) return &net->seats[0];
  if (task.role == WEIR_PS_SERVER && task.index < servers)
    return &net->seats[1 + task.index];
  if (task.role == WEIR_PS_WORKER && task.index < workers)
    return &net->seats[1 + servers + task.index];
  return NULL;
}

/* The seat of a task by its name; NULL: it is none of this job. */
static weir_ps_seat *seat_of(const weir_ps_net *net, const char *job,
                             uint32_t index) {
  for (int role = WEIR_PS_CHIEF; role <= WEIR_PS_WORKER; role++)
    if (strcmp(job, kJobs[role]) == 0)
      return weir_ps_net_seat(net, (weir_ps_task){(weir_ps_role)role, index});
  return NULL;
}

void weir_ps_net_wake(weir_ps_net *net) {
  if (net->posted || net->stopped) return;
  net->posted = true;
  weir_wires_post(net->wires, &net->settle);
}

/* ---- The lists */

static void settle_transfer(weir_ps_transfer *t) {
  if (t->values != NULL)
    t->values->sent(t->values);
  else if (t->link->in == t)
    weir_ps_link_arrived(t->link);
  weir_ps_transfer_release(t);
}

/* In the order in which they ended. */
static weir_ps_transfer *turned(weir_ps_transfer *list) {
  weir_ps_transfer *first = NULL;
  for (weir_ps_transfer *next; list != NULL; list = next) {
    next = list->next;
    list->next = first;
    first = list;
  }
  return first;
}

static void settle(weir_ps_net *net) {
  pthread_mutex_lock(&net->lock);
  weir_ps_transfer *ended = turned(net->ended);
  weir_ps_link *dead = net->dead;
  net->ended = NULL;
  net->dead = NULL;
  net->posted = false;
  pthread_mutex_unlock(&net->lock);
  weir_ps_values *dropped = net->dropped;
  net->dropped = NULL;
  for (weir_ps_transfer *next; ended != NULL; ended = next) {
    next = ended->next;
    settle_transfer(ended);
  }
  for (weir_ps_values *next; dropped != NULL; dropped = next) {
    next = dropped->next;
    dropped->sent(dropped);
  }
  for (weir_ps_link *next; dead != NULL; dead = next) {
    next = dead->next;
    weir_ps_link_release(dead);
  }
}

static void settle_call(void *self, bool runs) {
  if (runs) settle(self); /* else at the net's end */
}

/* ---- Links */

static bool is_refusal(const weir_error *why) {
  return strcmp(why->id, "W7023") == 0 || strcmp(why->id, "W7024") == 0 ||
         strcmp(why->id, "W7030") == 0;
}

/* "refused: ..." where a task said so. */
static void put_words(const weir_error *why, char *text, size_t size) {
  snprintf(text, size, "%s%.200s", is_refusal(why) ? "refused: " : "",
           why->message);
}

static void keep_words(const weir_ps_net *net, weir_ps_seat *seat,
                       const weir_error *why) {
  put_words(why, seat->last, sizeof seat->last);
  if (strcmp(why->id, "W7023") != 0) /* the others may pass */
    seat->refused_ns = 0;
  else if (seat->refused_ns == 0)
    seat->refused_ns = weir_ps_net_now(net);
}

static void end_link(weir_ps_net *net, weir_ps_link *link,
                     const weir_error *why) {
  weir_ps_seat *seat = link->seat;
  keep_words(net, seat, why);
  weir_ps_link_end(link, why);
  seat->away_ns = weir_ps_net_now(net);
  net->events.lost(net->events.self, seat->task, why);
}

static void link_up(void *self, weir_peer *peer) {
  weir_ps_net *net = self;
  weir_ps_seat *seat = seat_of(net, peer->job, peer->index);
  weir_error err = WEIR_ERROR_INIT;
  assert(seat != NULL);     /* it was admitted, or dialled */
  if (seat->link != NULL) { /* peer->last: why the older one had to go */
    weir_error_copy(&err, &seat->link->peer->last);
    end_link(net, seat->link, &err);
    err = (weir_error)WEIR_ERROR_INIT;
  }
  if (weir_ps_link_create(net, seat, peer, &err) != WEIR_OK) {
    weir_link_give_up(peer, &err);
    return;
  }
  seat->up_ns = weir_ps_net_now(net);
  seat->refused_ns = 0;
  net->events.up(net->events.self, seat->task);
}

static void link_message(void *self, weir_peer *peer,
                         const Weir__V1__Control *message) {
  (void)self;
  if (peer->owner != NULL) weir_ps_link_message(peer->owner, message);
}

/* Dials again: soon when the link was of use, else with pauses. */
static void dial_later(weir_ps_net *net, weir_ps_seat *seat,
                       const weir_ps_link *link) {
  int64_t now = weir_ps_net_now(net);
  bool served =
      link != NULL && (link->heard || now - seat->up_ns >= kPauseMost);
  seat->pause_ns *= 2;
  if (served || seat->pause_ns < kPauseLeast) seat->pause_ns = kPauseLeast;
  if (seat->pause_ns > kPauseMost) seat->pause_ns = kPauseMost;
  seat->next_ns = now + seat->pause_ns;
}

static void link_lost(void *self, weir_peer *peer, const weir_error *why) {
  weir_ps_net *net = self;
  weir_ps_seat *seat = seat_of(net, peer->job, peer->index);
  weir_ps_link *link = peer->owner;
  assert(seat != NULL);
  if (seat->peer == peer) {
    seat->peer = NULL;
    dial_later(net, seat, link);
  }
  if (link != NULL)
    end_link(net, link, why);
  else if (seat->link == NULL)
    keep_words(net, seat, why);
}

static void link_refused(void *self, const char *text) {
  weir_ps_net *net = self;
  if (net->events.log != NULL) net->events.log(net->events.self, text);
}

/* Who may dial us. */
static weir_status admits(void *self, const char *job, uint32_t index,
                          weir_error *err) {
  const weir_ps_net *net = self;
  const weir_ps_seat *seat = seat_of(net, job, index);
  weir_ps_task me = net->self;
  bool fits = seat != NULL && seat->address == NULL;
  if (fits && net->keys) fits = seat->task.role != WEIR_PS_CHIEF;
  if (fits && me.role == WEIR_PS_CHIEF)
    fits = seat->task.role == WEIR_PS_WORKER;
  else if (fits && seat->task.role == WEIR_PS_SERVER)
    fits = seat->task.index > me.index;
  if (fits) return WEIR_OK;
  if (job[0] == '\0')
    return weir_fail(err, WEIR_W7023, NULL,
                     "%s:%" PRIu32
                     " is of a job with parameter servers and takes no "
                     "drivers or observers",
                     kJobs[me.role], me.index);
  return weir_fail(err, WEIR_W7023, NULL,
                   "%s:%" PRIu32 " has no place at %s:%" PRIu32
                   " in a job of %" PRIu32 " servers and %" PRIu32 " workers",
                   job, index, kJobs[me.role], me.index, net->config.servers,
                   net->config.workers);
}

static weir_status bulk(void *self, uint32_t lane, uint32_t place,
                        const weir_net_frame *frame, weir_error *err) {
  weir_ps_net *net = self;
  weir_ps_link *link = NULL;
  pthread_mutex_lock(&net->lock);
  if (place < net->seat_count) link = net->seats[place].link;
  if (link != NULL && link->number != lane) link = NULL; /* of one before */
  if (link != NULL) link->uses++;
  pthread_mutex_unlock(&net->lock);
  if (link == NULL) return WEIR_OK;
  weir_status s = weir_exchange_on_bulk(link->values, 0, frame, err);
  weir_ps_link_let_go(link);
  return s;
}

/* ---- Time */

static int64_t dial(weir_ps_net *net, weir_ps_seat *seat, int64_t now_ns) {
  if (seat->address == NULL || seat->peer != NULL) return INT64_MAX;
  if (seat->address[0] == '\0') return INT64_MAX; /* the book will tell */
  if (now_ns < seat->next_ns) return seat->next_ns;
  const weir_link_target target = {.job = kJobs[seat->task.role],
                                   .index = seat->task.index,
                                   .address = seat->address,
                                   .until_ns = INT64_MAX};
  weir_error err = WEIR_ERROR_INIT;
  if (weir_link_dial(weir_wires_link(net->wires), now_ns, &target, &seat->peer,
                     &err) == WEIR_OK)
    return INT64_MAX; /* the link's tick follows */
  seat->next_ns = now_ns + kPauseMost;
  return seat->next_ns;
}

/* Nobody can do without the chief and the servers. A refusal is waited out for
 * less long: the job that refuses may be the one before, which ends. Returns
 * when |seat| has been away for too long; INT64_MAX: it is not. */
static int64_t look_for(weir_ps_net *net, weir_ps_seat *seat, int64_t now_ns) {
  weir_ps_task t = seat->task, me = net->self;
  bool needed =
      t.role != WEIR_PS_WORKER && (t.role != me.role || t.index != me.index);
  if (!needed || seat->link != NULL || net->told_away ||
      net->events.away == NULL)
    return INT64_MAX;
  if (seat->away_ns == 0) seat->away_ns = now_ns;
  int64_t at = seat->away_ns + net->away_ns, refused = seat->refused_ns;
  if (refused != 0 && refused + net->refused_ns < at)
    at = refused + net->refused_ns;
  if (now_ns < at) return at;
  weir_error why = WEIR_ERROR_INIT;
  char how[256];
  weir_ps_net_describe(net, t, how, sizeof how);
  weir_fail(&why, refused != 0 ? WEIR_W7023 : WEIR_W7022, NULL,
            "%s:%" PRIu32 " has not been there for %.0f s: %s", kJobs[t.role],
            t.index, (double)(now_ns - seat->away_ns) / 1e9, how);
  net->told_away = true;
  net->events.away(net->events.self, t, &why);
  return INT64_MAX;
}

static int64_t step(void *self, int64_t now_ns) {
  weir_ps_net *net = self;
  int64_t next = INT64_MAX;
  bool again = false;
  if (net->dropped != NULL) settle(net);
  for (uint32_t i = 0; i < net->seat_count; i++) {
    weir_ps_seat *seat = &net->seats[i];
    int64_t at = dial(net, seat, now_ns);
    if (at < next) next = at;
    at = look_for(net, seat, now_ns);
    if (at < next) next = at;
    again |= seat->link != NULL && weir_link_out_tick(seat->link->out);
  }
  if (net->events.step != NULL) {
    int64_t at = net->events.step(net->events.self, now_ns);
    if (at < next) next = at;
  }
  return again || net->dropped != NULL ? now_ns : next;
}

static void stepped(void *self) {
  (void)self;
}

/* ---- Life */

/* Whether |self| dials |task|. */
static bool dials(weir_ps_task self, weir_ps_task task) {
  if (task.role == WEIR_PS_CHIEF) return self.role == WEIR_PS_WORKER;
  return task.role == WEIR_PS_SERVER &&
         (self.role != WEIR_PS_SERVER || task.index < self.index);
}

static weir_status make_seats(weir_ps_net *net, const weir_ps_net_options *o,
                              weir_error *err) {
  const weir_ps_config *c = &net->config;
  net->seat_count = 1 + c->servers + c->workers;
  net->seats =
      weir_arena_array(&net->arena, net->seat_count, sizeof *net->seats);
  if (net->seats == NULL)
    return weir_fail_memory(err, net->seat_count * sizeof *net->seats);
  for (uint32_t i = 0; i < net->seat_count; i++) {
    weir_ps_seat *seat = &net->seats[i];
    const char *address = i == 0 ? o->chief : NULL;
    seat->task = (weir_ps_task){WEIR_PS_CHIEF, 0};
    if (i > c->servers) {
      seat->task = (weir_ps_task){WEIR_PS_WORKER, i - 1 - c->servers};
    } else if (i > 0) {
      seat->task = (weir_ps_task){WEIR_PS_SERVER, i - 1};
      address =
          i <= o->server_count && o->servers != NULL ? o->servers[i - 1] : NULL;
    }
    if (!dials(o->self, seat->task) || (i == 0 && o->keys)) continue;
    WEIR_TRY(weir_ps_net_seat_address(net, seat, address, err));
  }
  return WEIR_OK;
}

static weir_status make_wires(weir_ps_net *net, const weir_ps_net_options *o,
                              weir_error *err) {
  weir_link_self self;
  weir_wires_self(net->env, o->job_hash, net, &self);
  self.hashed =
      o->hashed != NULL ? o->hashed : "graph, configuration or first values";
  snprintf(self.job, sizeof self.job, "%s", kJobs[o->self.role]);
  self.index = o->self.index;
  weir_wires_options options = {.transports = o->transports,
                                .insecure = o->insecure,
                                .tls = o->tls,
                                .self = &self,
                                .link.heartbeat_ns = o->heartbeat_ns,
                                .link.max_peers = net->seat_count,
                                .link.replaces = true,
                                .link.admits = admits};
  weir_wires_calls calls = {
      .self = net,
      .link = {net, link_up, link_message, link_lost, link_refused},
      .step = step,
      .stepped = stepped,
      .bulk = bulk};
  WEIR_TRY(weir_wires_create(net->env, &options, &calls, &net->wires, err));
  if (o->self.role == WEIR_PS_WORKER) return WEIR_OK;
  return weir_wires_listen(net->wires, o->address, net->address, err);
}

static weir_status check(const weir_ps_net_options *o, weir_error *err) {
  const uint32_t most[] = {[WEIR_PS_CHIEF] = 1,
                           [WEIR_PS_SERVER] = o->config->servers,
                           [WEIR_PS_WORKER] = o->config->workers};
  WEIR_TRY(weir_ps_config_check(o->config, err));
  if (o->self.role > WEIR_PS_WORKER || o->self.index >= most[o->self.role])
    return weir_fail(err, WEIR_W7090, NULL,
                     "task %" PRIu32 " of role %d is none of this job",
                     o->self.index, (int)o->self.role);
  if (o->self.role != WEIR_PS_WORKER &&
      (o->address == NULL || strlen(o->address) >= WEIR_NET_ADDRESS_BYTES - 8))
    return weir_fail(err, WEIR_W7002, NULL,
                     "%s:%" PRIu32
                     " has no address to listen at, or a long "
                     "one",
                     kJobs[o->self.role], o->self.index);
  return WEIR_OK;
}

weir_status weir_ps_net_create(const weir_env *env,
                               const weir_ps_net_options *options,
                               const weir_ps_net_events *events,
                               weir_ps_net **out_net, weir_error *err) {
  *out_net = NULL;
  WEIR_TRY(check(options, err));
  weir_ps_net *net = weir_alloc_array(env->alloc, 1, sizeof *net);
  if (net == NULL) return weir_fail_memory(err, sizeof *net);
  net->env = env;
  net->self = options->self;
  net->config = *options->config;
  net->keys = options->keys;
  net->events = *events;
  net->book = options->book;
  net->linger_ns =
      5 * (options->heartbeat_ns > 0 ? options->heartbeat_ns : kSecond);
  net->away_ns = options->away_ns > 0 ? options->away_ns : WEIR_PS_AWAY_NS;
  net->refused_ns = net->away_ns < kRefused ? net->away_ns : kRefused;
  atomic_init(&net->leaving, 0);
  net->settle = (weir_node_call){.fn = settle_call, .self = net};
  weir_arena_init(&net->arena, env->alloc);
  pthread_mutex_init(&net->lock, NULL);
  pthread_cond_init(&net->changed, NULL);
  weir_status s = make_seats(net, options, err);
  if (s == WEIR_OK) s = make_wires(net, options, err);
  if (s != WEIR_OK)
    weir_ps_net_release(net);
  else
    *out_net = net;
  return s;
}

const char *weir_ps_net_address(const weir_ps_net *net) {
  return net->address;
}

weir_status weir_ps_net_start(weir_ps_net *net, weir_error *err) {
  WEIR_TRY(weir_wires_start(net->wires, err));
  net->started = true;
  if (net->book != NULL) weir_ps_net_book_begin(net);
  return WEIR_OK;
}

void weir_ps_net_stop(weir_ps_net *net) {
  weir_error why = WEIR_ERROR_INIT;
  if (net->stopped) return; /* the caller's thread is the only one then */
  if (net->book != NULL) weir_ps_net_book_end(net);
  if (net->started) weir_ps_linger(net);
  if (net->wires != NULL) weir_wires_stop(net->wires);
  pthread_mutex_lock(&net->lock);
  net->stopped = true;
  pthread_mutex_unlock(&net->lock);
  weir_fail(&why, WEIR_W7001, NULL, "this process ends its links");
  for (uint32_t i = 0; net->seats != NULL && i < net->seat_count; i++)
    if (net->seats[i].link != NULL) weir_ps_link_end(net->seats[i].link, &why);
}

void weir_ps_net_release(weir_ps_net *net) {
  if (net == NULL) return;
  weir_ps_net_stop(net);
  weir_wires_release(net->wires); /* the transports let go of all values */
  net->wires = NULL;
  while (net->ended != NULL || net->dropped != NULL || net->dead != NULL)
    settle(net);
  pthread_cond_destroy(&net->changed);
  pthread_mutex_destroy(&net->lock);
  weir_arena_release(&net->arena);
  weir_free(net->env->alloc, net);
}

/* ---- Calls */

void weir_ps_net_send(weir_ps_net *net, weir_ps_task to,
                      const weir_ps_message *m, weir_ps_values *values) {
  const weir_ps_seat *seat = weir_ps_net_seat(net, to);
  if (seat != NULL && seat->link != NULL &&
      weir_ps_link_send(seat->link, m, values))
    return;
  if (values == NULL) return;
  values->next = net->dropped; /* read at the end of this turn */
  net->dropped = values;
}

void weir_ps_net_give_up(weir_ps_net *net, weir_ps_task peer,
                         const weir_error *why) {
  const weir_ps_seat *seat = weir_ps_net_seat(net, peer);
  if (seat != NULL && seat->link != NULL)
    weir_link_give_up(seat->link->peer, why);
}

void weir_ps_net_post(weir_ps_net *net, weir_node_call *call) {
  weir_wires_post(net->wires, call);
}

void weir_ps_net_describe(const weir_ps_net *net, weir_ps_task peer, char *text,
                          size_t size) {
  const weir_ps_seat *seat = weir_ps_net_seat(net, peer);
  if (seat == NULL)
    snprintf(text, size, "no task of this job");
  else if (seat->link != NULL)
    snprintf(text, size, "up");
  else if (seat->peer != NULL && seat->peer->last.id[0] != '\0')
    put_words(&seat->peer->last, text, size);
  else if (seat->last[0] != '\0')
    snprintf(text, size, "%s", seat->last);
  else
    snprintf(text, size, "never answered");
}
