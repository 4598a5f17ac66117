/* SPDX-License-Identifier: Apache-2.0
 *
 * The wires of a process.
 *
 * The link is the control thread's and bulk connections are the bulk thread's,
 * so each posts its news to the other. A wire is a bulk connection, or an
 * attempt at one, with a call for each thing that is ever posted about it:
 * connect, connected, hello, closed, close, bad, each at most once and in this
 * order on its thread. So nothing but the wire itself is allocated; if that
 * fails the attempt is silent, and ends with the link's time for greetings.
 *
 * Invariant: a wire is in the list until its connection has ended, by either
 * side; each posted call holds it. The lock guards the list, refs, |c| and
 * |place|; |peer| is the control thread's, the rest the bulk thread's. */
#include "runtime/dist/cluster/wires.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "kernels/profile.h"
#include "runtime/base/mix.h"
#include "runtime/net/wire.h"

typedef struct wire {
  weir_wires *wires;
  struct wire *next;
  uint32_t refs;
  bool listed;
  uint64_t tag;
  weir_connection c; /* 0: none yet, or none came about */
  uint32_t lane;     /* of |peer| */
  uint32_t place;    /* likewise */
  bool placed;       /* it has one */
  weir_peer *peer;
  bool dropped;                 /* the link has closed it */
  bool connected, greeted, bad; /* as the bulk thread has seen */
  weir_net_frame *hello;
  weir_close_reason why;
  weir_error error;
  char address[WEIR_NET_ADDRESS_BYTES], text[128];
  weir_node_call connect, connect_end, greet, end, close, give_up;
} wire;

struct weir_wires {
  const weir_env *env;
  weir_wires_calls calls;
  weir_transport *transports[2];
  weir_node *node;
  weir_link *link;
  pthread_mutex_t lock;
  wire *first;
};

static int64_t now_of(const weir_wires *w) {
  return w->env->clock->now_ns(w->env->clock->self);
}

static wire *find(weir_wires *w, weir_connection c) {
  pthread_mutex_lock(&w->lock);
  wire *it = w->first;
  while (it != NULL && it->c != c) it = it->next;
  pthread_mutex_unlock(&w->lock);
  return it;
}

static void unref(wire *it) {
  weir_wires *w = it->wires;
  pthread_mutex_lock(&w->lock);
  bool last = --it->refs == 0;
  pthread_mutex_unlock(&w->lock);
  if (last) weir_free(w->env->alloc, it);
}

static void post(wire *it, weir_net_class cls, weir_node_call *call,
                 void (*fn)(void *self, bool runs)) {
  weir_wires *w = it->wires;
  pthread_mutex_lock(&w->lock);
  it->refs++;
  pthread_mutex_unlock(&w->lock);
  *call = (weir_node_call){.fn = fn, .self = it};
  weir_node_post(w->node, cls, call);
}

static void unlist(wire *it) {
  weir_wires *w = it->wires;
  pthread_mutex_lock(&w->lock);
  wire **at = &w->first;
  while (*at != NULL && *at != it) at = &(*at)->next;
  bool was = it->listed;
  if (was) *at = it->next;
  it->listed = false;
  pthread_mutex_unlock(&w->lock);
  if (was) unref(it);
}

/* ---- On the control thread */

static void connect_ended(void *self, bool runs) {
  wire *it = self;
  weir_wires *w = it->wires;
  pthread_mutex_lock(&w->lock);
  weir_connection c = it->c;
  pthread_mutex_unlock(&w->lock);
  if (runs) weir_link_bulk_on_connected(w->link, now_of(w), it->tag, c);
  if (c == 0) unlist(it);
  unref(it);
}

static void greeted(void *self, bool runs) {
  wire *it = self;
  weir_wires *w = it->wires;
  if (runs && !it->dropped)
    weir_link_bulk_on_frame(w->link, now_of(w), it->c, it->hello);
  weir_net_frame_unref(it->hello);
  unref(it);
}

static void ended(void *self, bool runs) {
  wire *it = self;
  weir_wires *w = it->wires;
  it->peer = NULL;
  if (runs && !it->dropped)
    weir_link_bulk_on_closed(w->link, now_of(w), it->c, it->why,
                             weir_sv_from(it->text));
  unlist(it);
  unref(it);
}

static void give_up(void *self, bool runs) {
  wire *it = self;
  if (runs && it->peer != NULL) weir_link_give_up(it->peer, &it->error);
  unref(it);
}

/* ---- On the bulk thread */

static void connect_now(void *self, bool runs) {
  wire *it = self;
  weir_wires *w = it->wires;
  weir_transport *t = w->transports[WEIR_NET_BULK];
  weir_connection c = 0;
  if (runs) {
    weir_error err = WEIR_ERROR_INIT;
    weir_status s = t->vt->connect(t, weir_sv_from(it->address), &c, &err);
    pthread_mutex_lock(&w->lock);
    it->c = s == WEIR_OK ? c : 0;
    pthread_mutex_unlock(&w->lock);
    if (s != WEIR_OK)
      post(it, WEIR_NET_CONTROL, &it->connect_end, connect_ended);
  } else {
    unlist(it);
  }
  unref(it);
}

static void close_now(void *self, bool runs) {
  wire *it = self;
  weir_transport *t = it->wires->transports[WEIR_NET_BULK];
  (void)runs; /* after the end of its thread this one may close, too */
  t->vt->close(t, it->c);
  unlist(it);
  unref(it);
}

static wire *make_wire(weir_wires *w, weir_connection c) {
  wire *it = weir_alloc_array(w->env->alloc, 1, sizeof *it);
  if (it == NULL) return NULL; /* see above */
  it->wires = w;
  it->refs = 1;
  it->listed = true;
  it->c = c;
  pthread_mutex_lock(&w->lock);
  it->next = w->first;
  w->first = it;
  pthread_mutex_unlock(&w->lock);
  return it;
}

static void on_bulk_connected(void *self, weir_connection c, weir_sv peer,
                              bool incoming) {
  (void)peer;
  weir_wires *w = self;
  wire *it = incoming ? make_wire(w, c) : find(w, c);
  if (it == NULL) return;
  it->connected = true;
  post(it, WEIR_NET_CONTROL, &it->connect_end, connect_ended);
}

static void on_bulk_frame(void *self, weir_connection c,
                          weir_net_frame *frame) {
  weir_wires *w = self;
  wire *it = find(w, c);
  if (it == NULL || it->bad) return;
  if (!it->greeted) {
    it->greeted = true;
    weir_net_frame_ref(frame);
    it->hello = frame;
    post(it, WEIR_NET_CONTROL, &it->greet, greeted);
    return;
  }
  pthread_mutex_lock(&w->lock);
  uint32_t place = it->place, lane = it->lane;
  bool placed = it->placed;
  pthread_mutex_unlock(&w->lock);
  it->error = (weir_error)WEIR_ERROR_INIT;
  if (!placed ||
      w->calls.bulk(w->calls.self, lane, place, frame, &it->error) == WEIR_OK)
    return;
  it->bad = true;
  post(it, WEIR_NET_CONTROL, &it->give_up, give_up);
}

static void on_bulk_closed(void *self, weir_connection c, weir_close_reason why,
                           weir_sv text) {
  weir_wires *w = self;
  wire *it = find(w, c);
  if (it == NULL) return;
  it->why = why;
  snprintf(it->text, sizeof it->text, "%.*s", WEIR_SV(text));
  if (it->connected) {
    post(it, WEIR_NET_CONTROL, &it->end, ended);
    return;
  }
  pthread_mutex_lock(&w->lock);
  it->c = 0;
  pthread_mutex_unlock(&w->lock);
  post(it, WEIR_NET_CONTROL, &it->connect_end, connect_ended);
}

/* ---- Requests of the link */

static void link_connect(void *self, uint64_t tag, const char *address) {
  weir_wires *w = self;
  wire *it = make_wire(w, 0);
  if (it == NULL) return;
  it->tag = tag;
  snprintf(it->address, sizeof it->address, "%s", address);
  post(it, WEIR_NET_BULK, &it->connect, connect_now);
}

static void link_close(void *self, weir_connection c) {
  wire *it = find(self, c);
  if (it == NULL || it->dropped) return;
  it->dropped = true;
  it->peer = NULL;
  post(it, WEIR_NET_BULK, &it->close, close_now);
}

static void link_opened(void *self, weir_connection c, weir_peer *peer) {
  weir_wires *w = self;
  wire *it = find(w, c);
  if (it == NULL) return;
  it->peer = peer;
  if (peer->place != UINT32_MAX) weir_wires_place(w, peer, peer->place);
}

void weir_wires_place(weir_wires *w, const weir_peer *peer, uint32_t place) {
  pthread_mutex_lock(&w->lock);
  for (wire *it = w->first; it != NULL; it = it->next)
    if (it->peer == peer) {
      it->lane = peer->lane;
      it->place = place;
      it->placed = true;
    }
  pthread_mutex_unlock(&w->lock);
}

/* Where bulk connections are taken. */
static void beside(const char *address, char *out, size_t size) {
  const char *colon = strrchr(address, ':');
  if (strncmp(address, "unix:", 5) == 0)
    snprintf(out, size, "%s.bulk", address);
  else if (strncmp(address, "local:", 6) == 0 || colon == NULL)
    snprintf(out, size, "local:");
  else
    snprintf(out, size, "%.*s:0", (int)(colon - address), address);
}

weir_status weir_wires_listen(weir_wires *w, const char *address,
                              char out_bound[WEIR_NET_ADDRESS_BYTES],
                              weir_error *err) {
  char at[WEIR_NET_ADDRESS_BYTES], bulk[WEIR_NET_ADDRESS_BYTES];
  weir_transport **t = w->transports;
  beside(address, at, sizeof at);
  WEIR_TRY(t[0]->vt->listen(t[0], weir_sv_from(address), out_bound, err));
  WEIR_TRY(t[1]->vt->listen(t[1], weir_sv_from(at), bulk, err));
  weir_link_set_bulk(w->link, bulk);
  return WEIR_OK;
}

bool weir_wires_is_here(const char *address) {
  static const char *const kHere[] = {"unix:", "local:", "127.", "[::1]",
                                      "localhost:"};
  for (size_t i = 0; i < sizeof kHere / sizeof kHere[0]; i++)
    if (strncmp(address, kHere[i], strlen(kHere[i])) == 0) return true;
  return false;
}

static void on_connected(void *self, weir_connection c, weir_sv peer,
                         bool incoming) {
  weir_wires *w = self;
  weir_link_on_connected(w->link, now_of(w), c, peer, incoming);
}

static void on_frame(void *self, weir_connection c, weir_net_frame *frame) {
  weir_wires *w = self;
  weir_link_on_frame(w->link, now_of(w), c, frame);
}

static void on_closed(void *self, weir_connection c, weir_close_reason why,
                      weir_sv text) {
  weir_wires *w = self;
  weir_link_on_closed(w->link, now_of(w), c, why, text);
}

/* ---- Life */

void weir_wires_self(const weir_env *env, uint64_t cluster_hash,
                     const void *owner, weir_link_self *out) {
  const weir_random *random = env->random;
  *out = (weir_link_self){
      .cluster_hash = cluster_hash,
      .profile = env->profile != 0 ? env->profile : weir_profile_best(),
      .protocol_min = WEIR_WIRE_PROTOCOL,
      .protocol_max = WEIR_WIRE_PROTOCOL,
      .build = "weir"};
  if (random == NULL ||
      !random->fill(random->self, &out->incarnation, sizeof out->incarnation))
    out->incarnation = weir_mix((uint64_t)env->clock->now_ns(env->clock->self) ^
                                (uintptr_t)owner);
  if (out->incarnation == 0) out->incarnation = 1;
}

static int64_t step(void *self, int64_t now_ns) {
  weir_wires *w = self;
  (void)weir_link_tick(w->link, now_ns);
  int64_t next = w->calls.step(w->calls.self, now_ns);
  int64_t other = weir_link_tick(w->link, now_ns);
  w->calls.stepped(w->calls.self);
  return other < next ? other : next;
}

/* Only memory can have failed: it may be there the next time. */
static bool poll_failed(void *self, weir_net_class cls, const weir_error *err) {
  (void)self, (void)cls, (void)err;
  return true;
}

static weir_status make(weir_wires *w, const weir_wires_options *options,
                        weir_error *err) {
  const weir_transports *transports = options->transports;
  const weir_transport_handler control = {w, on_connected, on_frame, on_closed};
  const weir_transport_handler bulk = {w, on_bulk_connected, on_bulk_frame,
                                       on_bulk_closed};
  const weir_transport_handler *handlers[2] = {&control, &bulk};
  weir_transport **t = w->transports;
  for (int i = 0; i < 2; i++) {
    weir_transport_options o = {.cls = (weir_net_class)i,
                                .insecure = options->insecure,
                                .tls = options->tls};
    WEIR_TRY(transports->create(transports->self, handlers[i], &o, &t[i], err));
  }
  weir_node_machine machine = {
      .self = w, .step = {step, NULL}, .failed = poll_failed};
  WEIR_TRY(weir_node_create(w->env, t[0], t[1], &machine, &w->node, err));
  weir_link_bulk to = {w, t[1], link_connect, link_close, link_opened};
  if (weir_link_create(w->env->alloc, options->self, &options->link,
                       &w->calls.link, t[0], &to, &w->link) == WEIR_OK)
    return WEIR_OK;
  return weir_fail_memory(err, sizeof to);
}

weir_status weir_wires_create(const weir_env *env,
                              const weir_wires_options *options,
                              const weir_wires_calls *calls,
                              weir_wires **out_wires, weir_error *err) {
  weir_wires *w = weir_alloc_array(env->alloc, 1, sizeof *w);
  *out_wires = NULL;
  if (w == NULL) return weir_fail_memory(err, sizeof *w);
  w->env = env;
  w->calls = *calls;
  if (pthread_mutex_init(&w->lock, NULL) != 0) {
    weir_free(env->alloc, w);
    return weir_fail(err, WEIR_W6003, NULL, "no mutex");
  }
  weir_status s = make(w, options, err);
  if (s != WEIR_OK)
    weir_wires_release(w);
  else
    *out_wires = w;
  return s;
}

weir_status weir_wires_start(weir_wires *w, weir_error *err) {
  return weir_node_start(w->node, err);
}

void weir_wires_stop(weir_wires *w) {
  if (w->node == NULL) return;
  weir_node_stop(w->node);
  weir_node_join(w->node);
}

void weir_wires_release(weir_wires *w) {
  if (w == NULL) return;
  weir_link_release(w->link);
  if (w->node == NULL)
    for (int i = 0; i < 2; i++) weir_transport_release(w->transports[i]);
  weir_node_release(w->node);
  while (w->first != NULL) unlist(w->first);
  pthread_mutex_destroy(&w->lock);
  weir_free(w->env->alloc, w);
}

void weir_wires_post(weir_wires *w, weir_node_call *call) {
  weir_node_post(w->node, WEIR_NET_CONTROL, call);
}

bool weir_wires_stand_in(weir_wires *w, weir_node_call *call,
                         weir_node_over (*over)(void *self), void *self) {
  return weir_node_stand_in(w->node, WEIR_NET_CONTROL, call, over, self);
}

void weir_wires_offer(weir_wires *w) {
  weir_node_offer(w->node, WEIR_NET_CONTROL);
}

weir_link *weir_wires_link(const weir_wires *w) {
  return w->link;
}

weir_transport *weir_wires_transport(const weir_wires *w, weir_net_class cls) {
  return w->transports[cls];
}
