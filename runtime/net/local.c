/* SPDX-License-Identifier: Apache-2.0
 *
 * Transports within one process.
 *
 * One lock guards all transports of a hub. A connection is a pair of sides, one
 * at each transport; a side holds the events that its owner has not yet seen:
 * that it is connected, frames (parcels of the peer), that it has ended. Sides
 * with events stand in their transport's ring, so that all get their turn.
 * Memory is taken where calls can fail: ends need none.
 *
 * Invariants: no callback runs under the lock. A parcel out of its queue, not
 * yet released, is counted at its sender (|loose|), whose release waits for it:
 * the sender's pieces may go away afterwards. */
#include "runtime/net/local.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "runtime/net/local_sides.h"

/* ---- Listen and connect */

static weir_status check_address(weir_sv address, weir_error *err) {
  if (!weir_sv_starts_with(address, "local:") ||
      memchr(address.data, '\0', address.size) != NULL)
    return weir_fail(err, WEIR_W7002, NULL, "%.*s: not of the form local:NAME",
                     WEIR_SV(address));
  if (address.size >= WEIR_NET_ADDRESS_BYTES)
    return weir_fail(err, WEIR_W7002, NULL,
                     "an address of %zu bytes, at most %d", address.size,
                     WEIR_NET_ADDRESS_BYTES - 1);
  return WEIR_OK;
}

static weir_local *listens(const weir_net_hub *hub, weir_sv address) {
  for (size_t i = 0; i < hub->listeners.count; i++)
    if (weir_sv_is(address, hub->listeners.items[i].address))
      return hub->listeners.items[i].owner;
  return NULL;
}

static weir_status listen_locked(weir_local *t, weir_sv address,
                                 char out_bound[WEIR_NET_ADDRESS_BYTES],
                                 weir_error *err) {
  weir_net_hub *hub = t->hub;
  weir_local_listener new = {.owner = t};
  memcpy(new.address, address.data, address.size);
  if (weir_sv_is(address, "local:")) {
    do {
      snprintf(new.address, sizeof new.address, "local:%" PRIu64, ++hub->names);
    } while (listens(hub, weir_sv_from(new.address)) != NULL);
  } else if (listens(hub, address) != NULL) {
    return weir_fail(err, WEIR_W7002, NULL, "%.*s: taken", WEIR_SV(address));
  }
  if (!weir_vec_push(hub->env->alloc, &hub->listeners, new))
    return weir_fail_memory(err, sizeof new);
  memcpy(out_bound, new.address, sizeof new.address);
  return WEIR_OK;
}

static weir_status local_listen(weir_transport *base, weir_sv address,
                                char out_bound[WEIR_NET_ADDRESS_BYTES],
                                weir_error *err) {
  weir_local *t = (weir_local *)base;
  out_bound[0] = '\0';
  WEIR_TRY(check_address(address, err));
  pthread_mutex_lock(&t->hub->lock);
  weir_status s = listen_locked(t, address, out_bound, err);
  pthread_mutex_unlock(&t->hub->lock);
  return s;
}

/* Where the dialler listens, else a text that says that it does not. */
static const char *name_of(const weir_local *t) {
  for (size_t i = 0; i < t->hub->listeners.count; i++)
    if (t->hub->listeners.items[i].owner == t)
      return t->hub->listeners.items[i].address;
  return "local:(not listening)";
}

/* Makes room for two more sides: both may belong to |t|. */
static bool reserve(weir_local *t) {
  return weir_vec_reserve(t->hub->env->alloc, &t->sides, 2);
}

/* Gives side |s| to |t|; its place is reserved. */
static void attach(weir_local_side *s, weir_local *t, weir_sv peer) {
  s->owner = t;
  s->id = ++t->last;
  memcpy(s->peer, peer.data, peer.size);
  t->sides.items[t->sides.count++] = s;
}

/* On failure |both| is the caller's, else the sides'. */
static weir_status connect_locked(weir_local *t, weir_sv address,
                                  weir_local_pair *both, weir_error *err) {
  weir_local_side *mine = &both->sides[0], *theirs = &both->sides[1];
  weir_local *peer = listens(t->hub, address);
  mine->both = theirs->both = both;
  if (!reserve(t) || (peer != NULL && !reserve(peer)))
    return weir_fail_memory(err, 2 * sizeof mine);
  attach(mine, t, address);
  if (peer == NULL) {
    weir_local_finish(mine, WEIR_CLOSED_UNREACHABLE, "nobody listens there");
  } else if (peer->base.options.cls != t->base.options.cls) {
    weir_local_finish(mine, WEIR_CLOSED_REFUSED,
                      "it takes frames of the other class");
  } else {
    attach(theirs, peer, weir_sv_from(name_of(t)));
    theirs->incoming = true;
    mine->tell_connected = theirs->tell_connected = true;
    weir_local_tell(mine);
    weir_local_tell(theirs);
  }
  return WEIR_OK;
}

static weir_status local_connect(weir_transport *base, weir_sv address,
                                 weir_connection *out_connection,
                                 weir_error *err) {
  weir_local *t = (weir_local *)base;
  *out_connection = 0;
  WEIR_TRY(check_address(address, err));
  weir_local_pair *both = weir_alloc_array(base->env->alloc, 1, sizeof *both);
  if (both == NULL) return weir_fail_memory(err, sizeof *both);
  pthread_mutex_lock(&t->hub->lock);
  weir_status s = connect_locked(t, address, both, err);
  if (s == WEIR_OK) *out_connection = t->last - (both->sides[1].owner == t);
  pthread_mutex_unlock(&t->hub->lock);
  if (s != WEIR_OK) weir_free(base->env->alloc, both);
  return s;
}

/* ---- Send and close */

static weir_status send_locked(weir_local *t, weir_connection c,
                               weir_net_parcel *parcel, bool *out_cut,
                               weir_error *err) {
  weir_local_side *mine = weir_local_find(t, c);
  weir_local_side *theirs = mine != NULL ? weir_local_other(mine) : NULL;
  *out_cut = false;
  if (mine == NULL || mine->ended || theirs->owner == NULL)
    return weir_fail(err, WEIR_W7001, NULL, "connection %" PRIu64 " has ended",
                     c);
  if (parcel->size > t->base.options.max_queue_bytes - theirs->queue_bytes)
    return weir_fail(err, WEIR_W7003, NULL,
                     "%zu bytes wait for %s, at most %zu", theirs->queue_bytes,
                     mine->peer, t->base.options.max_queue_bytes);
  if (parcel->size > theirs->owner->base.options.max_frame_bytes) {
    *out_cut = true;
    weir_local_finish(mine, WEIR_CLOSED_REFUSED,
                      "the frame is above the peer's limit");
    weir_local_finish(theirs, WEIR_CLOSED_REFUSED,
                      "a frame is above the limit");
    return WEIR_OK;
  }
  parcel->owner = t;
  weir_net_parcels_push(&theirs->arrived, parcel);
  theirs->queue_bytes += parcel->size;
  theirs->count++;
  weir_local_tell(theirs);
  return WEIR_OK;
}

static weir_status local_send(weir_transport *base, weir_connection c,
                              const weir_net_piece *pieces, size_t count,
                              weir_error *err) {
  weir_local *t = (weir_local *)base;
  weir_net_parcel *parcel = NULL;
  bool cut = false;
  WEIR_TRY(
      weir_net_parcel_create(base->env->alloc, pieces, count, &parcel, err));
  pthread_mutex_lock(&t->hub->lock);
  weir_status s = send_locked(t, c, parcel, &cut, err);
  pthread_mutex_unlock(&t->hub->lock);
  if (cut) weir_net_parcel_let_go(parcel);
  if (cut || s != WEIR_OK) weir_net_parcel_free(parcel);
  return s;
}

static void local_close(weir_transport *base, weir_connection c) {
  weir_local *t = (weir_local *)base;
  weir_net_parcel *unseen = NULL;
  pthread_mutex_lock(&t->hub->lock);
  weir_local_side *s = weir_local_find(t, c);
  if (s != NULL) {
    weir_local_finish(weir_local_other(s), WEIR_CLOSED_BY_PEER, "");
    unseen = weir_local_part(s);
  }
  weir_local_let_go(t->hub, unseen);
  pthread_mutex_unlock(&t->hub->lock);
}

/* ---- Poll and wake */

/* Waits on |changed| until |deadline_ns|. The condition counts by the system's
 * clock, so the time left on the env's clock is added to that. */
static void wait_until(weir_local *t, int64_t deadline_ns) {
  const int64_t second = 1000000000;
  const int64_t most = 3600 * second;
  if (deadline_ns == INT64_MAX) {
    pthread_cond_wait(&t->changed, &t->hub->lock);
    return;
  }
  int64_t left =
      deadline_ns - t->base.env->clock->now_ns(t->base.env->clock->self);
  if (left > most) left = most;
  if (left < 0) left = 0;
  struct timespec until = {0};
  clock_gettime(CLOCK_MONOTONIC, &until);
  left += until.tv_nsec;
  until.tv_sec += (time_t)(left / second);
  until.tv_nsec = (long)(left % second);
  pthread_cond_timedwait(&t->changed, &t->hub->lock, &until);
}

static bool is_over(const weir_local *t, int64_t deadline_ns) {
  const weir_clock *clock = t->base.env->clock;
  if (deadline_ns == 0 || deadline_ns == INT64_MAX) return deadline_ns == 0;
  return clock->now_ns(clock->self) >= deadline_ns;
}

/* Gives the owner the first frame of |s|; locked, also afterwards. */
static weir_status give_frame(weir_local *t, weir_local_side *s,
                              weir_error *err) {
  const weir_transport_handler *to = &t->base.handler;
  weir_connection id = s->id;
  weir_net_parcel *parcel = weir_local_take(s);
  weir_local *sender = parcel->owner;
  pthread_mutex_unlock(&t->hub->lock);
  weir_status st = weir_net_parcel_open(parcel, t->base.env->alloc, NULL, err);
  if (st == WEIR_OK) weir_net_parcel_let_go(parcel);
  pthread_mutex_lock(&t->hub->lock);
  if (st != WEIR_OK && !sender->leaving) {
    weir_local_untake(s, parcel); /* the next poll tries again */
    return st;
  }
  if (st != WEIR_OK) weir_local_let_go(t->hub, parcel);
  if (st == WEIR_OK) weir_local_settle(sender, 1);
  if (s->arrived.head != NULL || s->ended) weir_local_ring_push(s);
  if (st != WEIR_OK) return st;
  pthread_mutex_unlock(&t->hub->lock);
  to->on_frame(to->self, id, parcel->frame);
  weir_net_parcel_free(parcel);
  pthread_mutex_lock(&t->hub->lock);
  return WEIR_OK;
}

static void give_connected(weir_local *t, weir_local_side *s) {
  const weir_transport_handler *to = &t->base.handler;
  weir_connection id = s->id;
  bool incoming = s->incoming;
  char peer[WEIR_NET_ADDRESS_BYTES];
  memcpy(peer, s->peer, sizeof peer);
  s->tell_connected = false;
  t->events--;
  if (s->arrived.head != NULL || s->ended) weir_local_ring_push(s);
  pthread_mutex_unlock(&t->hub->lock);
  to->on_connected(to->self, id, weir_sv_from(peer), incoming);
  pthread_mutex_lock(&t->hub->lock);
}

static void give_end(weir_local *t, weir_local_side *s) {
  const weir_transport_handler *to = &t->base.handler;
  weir_connection id = s->id;
  weir_close_reason why = s->why;
  weir_sv text = weir_sv_from(s->why_text);
  weir_local_part(s); /* no frames are left */
  pthread_mutex_unlock(&t->hub->lock);
  to->on_closed(to->self, id, why, text);
  pthread_mutex_lock(&t->hub->lock);
}

static weir_status give(weir_local *t, weir_local_side *s, weir_error *err) {
  weir_status st = WEIR_OK;
  if (s->tell_connected) {
    give_connected(t, s);
  } else if (s->arrived.head != NULL) {
    st = give_frame(t, s, err);
  } else {
    give_end(t, s);
  }
  return st;
}

static weir_status local_poll(weir_transport *base, int64_t deadline_ns,
                              weir_error *err) {
  weir_local *t = (weir_local *)base;
  weir_status st = WEIR_OK;
  pthread_mutex_lock(&t->hub->lock);
  while (t->ring == NULL && !t->woken && !is_over(t, deadline_ns))
    wait_until(t, deadline_ns);
  t->woken = false;
  for (size_t n = t->events; n > 0 && st == WEIR_OK; n--) {
    weir_local_side *s = weir_local_ring_pop(t);
    if (s == NULL) break; /* a callback has closed the rest */
    st = give(t, s, err);
  }
  pthread_mutex_unlock(&t->hub->lock);
  return st;
}

static void local_wake(weir_transport *base) {
  weir_local *t = (weir_local *)base;
  pthread_mutex_lock(&t->hub->lock);
  t->woken = true;
  pthread_cond_broadcast(&t->changed);
  pthread_mutex_unlock(&t->hub->lock);
}

/* ---- The whole */

static void hub_let_go(weir_net_hub *hub) {
  size_t left = --hub->holders;
  pthread_mutex_unlock(&hub->lock);
  if (left > 0) return;
  weir_vec_free(hub->env->alloc, &hub->listeners);
  pthread_mutex_destroy(&hub->lock);
  weir_free(hub->env->alloc, hub);
}

static void forget_listeners(weir_local *t) {
  size_t kept = 0;
  weir_net_hub *hub = t->hub;
  for (size_t i = 0; i < hub->listeners.count; i++)
    if (hub->listeners.items[i].owner != t)
      hub->listeners.items[kept++] = hub->listeners.items[i];
  hub->listeners.count = kept;
}

/* A side that holds frames of |t|; NULL: there is none. */
static weir_local_side *holder(const weir_local *t) {
  for (const weir_local *u = t->hub->transports; u != NULL; u = u->next)
    for (size_t i = 0; i < u->sides.count; i++) {
      const weir_net_parcel *first = u->sides.items[i]->arrived.head;
      if (first != NULL && first->owner == t) return u->sides.items[i];
    }
  return NULL;
}

/* Takes back frames of |t| that no one has polled; their connections are reset,
 * those among them that |t| had closed. */
static void take_back(weir_local *t) {
  for (weir_local_side *s = holder(t); s != NULL; s = holder(t)) {
    assert(s->ended);
    s->why = WEIR_CLOSED_RESET;
    s->why_text = "the peer is gone";
    weir_local_let_go(t->hub, weir_local_take_all(s));
  }
}

static void local_release(weir_transport *base) {
  weir_local *t = (weir_local *)base;
  weir_net_hub *hub = t->hub;
  pthread_mutex_lock(&hub->lock);
  t->leaving = true;
  forget_listeners(t);
  while (t->sides.count > 0) {
    weir_local_side *s = t->sides.items[t->sides.count - 1];
    weir_local_finish(weir_local_other(s), WEIR_CLOSED_RESET,
                      "the peer is gone");
    weir_local_let_go(hub, weir_local_part(s));
  }
  take_back(t);
  while (t->loose > 0) pthread_cond_wait(&t->changed, &hub->lock);
  weir_local **at = &hub->transports;
  while (*at != t) at = &(*at)->next;
  *at = t->next;
  hub_let_go(hub);
  pthread_cond_destroy(&t->changed);
  weir_vec_free(base->env->alloc, &t->sides);
  weir_free(base->env->alloc, t);
}

static const weir_transport_vtable kLocal = {
    .release = local_release,
    .connect = local_connect,
    .listen = local_listen,
    .send = local_send,
    .close = local_close,
    .poll = local_poll,
    .wake = local_wake,
};

weir_status weir_net_hub_create(const weir_env *env, weir_net_hub **out_hub,
                                weir_error *err) {
  *out_hub = NULL;
  weir_net_hub *hub = weir_alloc_array(env->alloc, 1, sizeof *hub);
  if (hub == NULL) return weir_fail_memory(err, sizeof *hub);
  hub->env = env;
  hub->holders = 1;
  pthread_mutex_init(&hub->lock, NULL);
  *out_hub = hub;
  return WEIR_OK;
}

void weir_net_hub_release(weir_net_hub *hub) {
  if (hub == NULL) return;
  pthread_mutex_lock(&hub->lock);
  hub_let_go(hub);
}

weir_status weir_transport_local_create(weir_net_hub *hub,
                                        const weir_transport_handler *handler,
                                        const weir_transport_options *options,
                                        weir_transport **out_transport,
                                        weir_error *err) {
  *out_transport = NULL;
  weir_local *t = weir_alloc_array(hub->env->alloc, 1, sizeof *t);
  if (t == NULL) return weir_fail_memory(err, sizeof *t);
  weir_transport_init(&t->base, &kLocal, hub->env, handler, options);
  t->hub = hub;
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&t->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  pthread_mutex_lock(&hub->lock);
  hub->holders++;
  t->next = hub->transports;
  hub->transports = t;
  pthread_mutex_unlock(&hub->lock);
  *out_transport = &t->base;
  return WEIR_OK;
}
