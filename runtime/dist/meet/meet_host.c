/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler's side of a meeting: the registry, between its links.
 *
 * A guest is a link; its key in the registry is the link's peer. Seats are told
 * from the control thread alone: the registry's calls come there, and a change
 * of the book is posted there. What was last told to a peer is not kept: a seat
 * is small, changes are few, so each goes to all. */
#include "runtime/dist/meet/meet_host.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/dist/meet/meet_link.h"
#include "runtime/dist/meet/registry.h"
#include "runtime/net/wire_error.h"

static const int64_t kSecond = 1000000000;

/* A link that is up, in the peer's |owner|. */
typedef struct guest {
  struct guest *next;
  weir_peer *peer;
  uint32_t rank; /* WEIR_REGISTRY_NONE: none yet */
} guest;

struct weir_meet_host {
  const weir_env *env;
  weir_meet_options options;
  char address[WEIR_NET_ADDRESS_BYTES];
  weir_wires *wires;
  bool started;
  weir_node_call read;
  pthread_mutex_t lock;
  bool reads; /* under the lock: |read| is posted */
  /* The control thread's: */
  weir_registry *registry;
  guest *guests;
  int64_t word_ns; /* when it says again who is missing */
  bool complete;   /* all have been there at one time */
  bool changed;    /* all are to be told */
};

static int64_t now_of(const weir_meet_host *h) {
  return h->env->clock->now_ns(h->env->clock->self);
}

/* ---- What guests are told */

/* Addresses lie in |texts|, one after another. */
static void tell(const weir_meet_host *h, guest *g,
                 char (*texts)[WEIR_NET_ADDRESS_BYTES], char **servers) {
  uint32_t count = h->options.servers;
  Weir__V1__MeetSeat seat = WEIR__V1__MEET_SEAT__INIT;
  seat.ranked = g->rank != WEIR_REGISTRY_NONE;
  seat.servers_here = weir_registry_here(h->registry, WEIR_PS_SERVER);
  seat.workers_here = weir_registry_here(h->registry, WEIR_PS_WORKER);
  if (seat.ranked) {
    seat.rank = g->rank;
    seat.chief = texts[count];
    seat.n_servers = count;
    seat.servers = servers;
  }
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  m.body_case = WEIR__V1__CONTROL__BODY_MEET_SEAT;
  m.meet_seat = &seat;
  weir_link_send(g->peer, 0, &m);
}

static void tell_all(weir_meet_host *h) {
  char texts[WEIR_PS_SERVERS + 1][WEIR_NET_ADDRESS_BYTES];
  char *servers[WEIR_PS_SERVERS];
  uint32_t count = h->options.servers;
  h->changed = false;
  for (uint32_t i = 0; i < count; i++) {
    weir_ps_book_get(h->options.book, (weir_ps_task){WEIR_PS_SERVER, i},
                     texts[i]);
    servers[i] = texts[i];
  }
  weir_ps_book_get(h->options.book, (weir_ps_task){WEIR_PS_CHIEF, 0},
                   texts[count]);
  for (guest *g = h->guests; g != NULL; g = g->next) tell(h, g, texts, servers);
}

/* ---- Calls of the registry */

static void on_seat(void *self, void *key, uint32_t rank) {
  weir_meet_host *h = self;
  guest *g = ((weir_peer *)key)->owner;
  if (g != NULL) g->rank = rank;
  h->changed = true;
}

static void drop(weir_meet_host *h, weir_peer *peer) {
  guest **at = &h->guests;
  while (*at != NULL && (*at)->peer != peer) at = &(*at)->next;
  guest *gone = *at;
  if (gone == NULL) return;
  *at = gone->next;
  peer->owner = NULL;
  weir_free(h->env->alloc, gone);
}

static void on_refuse(void *self, void *key, const weir_error *why) {
  weir_meet_host *h = self;
  weir_peer *peer = key;
  char text[400];
  Weir__V1__Error words = WEIR__V1__ERROR__INIT;
  Weir__V1__MeetSeat seat = WEIR__V1__MEET_SEAT__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  weir_wire_error_put(why, &words);
  seat.refused = &words;
  m.body_case = WEIR__V1__CONTROL__BODY_MEET_SEAT;
  m.meet_seat = &seat;
  weir_link_send(peer, 0, &m);
  snprintf(text, sizeof text, "refused a process at %.100s: %.250s",
           peer->address, why->message);
  weir_meet_say(&h->options, text);
  drop(h, peer);
  weir_link_drop(peer); /* after the frame */
}

static void on_moved(void *self, uint32_t server, const char *address) {
  weir_meet_host *h = self;
  weir_ps_book_set(h->options.book, (weir_ps_task){WEIR_PS_SERVER, server},
                   address);
}

static void on_log(void *self, const char *text) {
  const weir_meet_host *h = self;
  weir_meet_say(&h->options, text);
}

/* ---- Events of links */

static void link_up(void *self, weir_peer *peer) {
  weir_meet_host *h = self;
  weir_error err = WEIR_ERROR_INIT;
  guest *g = weir_alloc_array(h->env->alloc, 1, sizeof *g);
  if (g == NULL) {
    weir_fail_memory(&err, sizeof *g);
    weir_link_give_up(peer, &err);
    return;
  }
  *g = (guest){h->guests, peer, WEIR_REGISTRY_NONE};
  h->guests = g;
  peer->owner = g;
}

static void link_message(void *self, weir_peer *peer,
                         const Weir__V1__Control *message) {
  weir_meet_host *h = self;
  weir_error err = WEIR_ERROR_INIT;
  const Weir__V1__MeetKnock *k = message->meet_knock;
  if (peer->owner == NULL) return;
  if (message->body_case != WEIR__V1__CONTROL__BODY_MEET_KNOCK ||
      (k->role != WEIR_PS_SERVER && k->role != WEIR_PS_WORKER)) {
    weir_fail(&err, WEIR_W7011, NULL, "%s sends what a scheduler does not know",
              peer->name);
    weir_link_give_up(peer, &err);
    return;
  }
  const weir_registry_knock knock = {.role = (weir_ps_role)k->role,
                                     .servers = k->servers,
                                     .workers = k->workers,
                                     .ranked = k->ranked,
                                     .seated = k->seated,
                                     .rank = k->rank,
                                     .address = k->address};
  weir_registry_knock_at(h->registry, now_of(h),
                         (weir_registry_guest){peer, peer->incarnation},
                         &knock);
}

static void link_lost(void *self, weir_peer *peer, const weir_error *why) {
  weir_meet_host *h = self;
  (void)why;
  drop(h, peer);
  weir_registry_lost(h->registry, now_of(h), peer);
}

static void link_refused(void *self, const char *text) {
  on_log(self, text);
}

/* ---- Words about those that are missing */

/* Says who is missing, until all have been there once. */
static int64_t say_missing(weir_meet_host *h, int64_t now_ns) {
  char text[160];
  uint32_t servers = weir_registry_here(h->registry, WEIR_PS_SERVER);
  uint32_t workers = weir_registry_here(h->registry, WEIR_PS_WORKER);
  const weir_meet_options *o = &h->options;
  if (h->complete) return INT64_MAX;
  h->complete = servers >= o->servers && workers >= o->workers;
  if (h->complete) {
    weir_meet_say(o, "all processes of the job have registered");
    return INT64_MAX;
  }
  if (now_ns < h->word_ns) return h->word_ns;
  snprintf(text, sizeof text,
           "waits for processes to register: %" PRIu32 " of %" PRIu32
           " servers and %" PRIu32 " of %" PRIu32 " workers are there",
           servers, o->servers, workers, o->workers);
  weir_meet_say(o, text);
  h->word_ns = now_ns + 10 * kSecond;
  return h->word_ns;
}

static int64_t step(void *self, int64_t now_ns) {
  weir_meet_host *h = self;
  int64_t next = weir_registry_tick(h->registry, now_ns);
  int64_t word = say_missing(h, now_ns);
  if (h->changed) tell_all(h);
  return word < next ? word : next;
}

static void stepped(void *self) {
  (void)self;
}

/* ---- The book */

static void read_book(void *self, bool runs) {
  weir_meet_host *h = self;
  pthread_mutex_lock(&h->lock);
  h->reads = false;
  pthread_mutex_unlock(&h->lock);
  if (runs) h->changed = true; /* this turn's step tells */
}

static void book_changed(void *self) {
  weir_meet_host *h = self;
  pthread_mutex_lock(&h->lock);
  bool post = !h->reads;
  h->reads = true;
  if (post) weir_wires_post(h->wires, &h->read);
  pthread_mutex_unlock(&h->lock);
}

/* ---- Life */

static weir_status start(weir_meet_host *h, const char *address,
                         weir_error *err) {
  const weir_meet_options *o = &h->options;
  int64_t beat = o->heartbeat_ns > 0 ? o->heartbeat_ns : kSecond;
  weir_registry_calls calls = {h, on_seat, on_refuse, on_moved, on_log};
  WEIR_TRY(weir_registry_create(h->env->alloc, o->servers, o->workers,
                                10 * beat, &calls, &h->registry, err));
  weir_wires_calls wires = {
      .self = h,
      .link = {h, link_up, link_message, link_lost, link_refused},
      .step = step,
      .stepped = stepped};
  WEIR_TRY(weir_meet_wires(h->env, o, true, &wires, &h->wires, err));
  WEIR_TRY(weir_wires_listen(h->wires, address, h->address, err));
  WEIR_TRY(weir_wires_start(h->wires, err));
  h->started = true;
  weir_ps_book_listen(o->book, WEIR_PS_READER_MEET, book_changed, h);
  return WEIR_OK;
}

weir_status weir_meet_host_create(const weir_env *env,
                                  const weir_meet_options *options,
                                  weir_meet_host **out_host, weir_error *err) {
  *out_host = NULL;
  weir_meet_host *h = weir_alloc_array(env->alloc, 1, sizeof *h);
  if (h == NULL) return weir_fail_memory(err, sizeof *h);
  h->env = env;
  h->options = *options;
  h->options.address = NULL; /* lent for this call */
  h->read = (weir_node_call){.fn = read_book, .self = h};
  /* The first word comes when there has been time to register. */
  h->word_ns = now_of(h) + 2 * kSecond;
  pthread_mutex_init(&h->lock, NULL);
  weir_status s = start(h, options->address, err);
  if (s != WEIR_OK)
    weir_meet_host_release(h);
  else
    *out_host = h;
  return s;
}

const char *weir_meet_host_address(const weir_meet_host *host) {
  return host->address;
}

void weir_meet_host_release(weir_meet_host *h) {
  if (h == NULL) return;
  if (h->started) {
    weir_ps_book_listen(h->options.book, WEIR_PS_READER_MEET, NULL, NULL);
    weir_wires_stop(h->wires);
  }
  weir_wires_release(h->wires);
  while (h->guests != NULL) {
    guest *g = h->guests;
    h->guests = g->next;
    weir_free(h->env->alloc, g);
  }
  weir_registry_release(h->registry);
  pthread_mutex_destroy(&h->lock);
  weir_free(h->env->alloc, h);
}
