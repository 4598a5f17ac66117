/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/link/link.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/table.h"
#include "runtime/dist/link/link_internal.h"

/* Peers: dialling, frames, loss. link_hello.c has the greeting, link_time.c all
 * that comes with time.
 *
 * A peer goes from state to state in their order; a dialled one that fails
 * before it is up goes back to WAITING. Invariant: a peer has a control
 * connection exactly from DIALLING to UP, and every live connection belongs to
 * one peer or is a stray. Peers are reported lost by tick() alone, and freed by
 * weir_link_reap() at the end of an entry, so pointers hold during events. */

weir_status weir_link_create(const weir_allocator *alloc,
                             const weir_link_self *self,
                             const weir_link_options *options,
                             const weir_link_events *events,
                             weir_transport *control,
                             const weir_link_bulk *bulk, weir_link **out_link) {
  weir_link *link = weir_alloc_array(alloc, 1, sizeof *link);
  *out_link = link;
  if (link == NULL) return weir_fail_memory(NULL, sizeof *link);
  link->alloc = alloc;
  link->self = *self;
  link->events = *events;
  link->control = control;
  link->bulk = *bulk;
  weir_link_options *o = &link->options;
  if (options != NULL) *o = *options;
  const int64_t second = 1000000000;
  if (o->heartbeat_ns == 0) o->heartbeat_ns = second;
  if (o->suspect_ns == 0) o->suspect_ns = 3 * o->heartbeat_ns;
  if (o->dead_ns == 0) o->dead_ns = 5 * o->heartbeat_ns;
  if (o->greet_ns == 0) o->greet_ns = 5 * second;
  if (o->retry_min_ns == 0) o->retry_min_ns = second / 10;
  if (o->retry_max_ns == 0) o->retry_max_ns = second;
  if (o->max_peers == 0) o->max_peers = 1024;
  if (o->max_greeting == 0) o->max_greeting = 256;
  return WEIR_OK;
}

void weir_link_close(weir_link *link, weir_peer *peer) {
  if (peer->control != 0)
    link->control->vt->close(link->control, peer->control);
  if (peer->bulk != 0) link->bulk.close(link->bulk.self, peer->bulk);
  if (peer->probe != 0) link->control->vt->close(link->control, peer->probe);
  peer->control = peer->bulk = peer->probe = 0;
  peer->tag = 0;
}

void weir_link_release(weir_link *link) {
  if (link == NULL) return;
  for (size_t i = 0; i < link->peers.count; i++) {
    weir_link_close(link, link->peers.items[i]);
    weir_free(link->alloc, link->peers.items[i]);
  }
  for (size_t i = 0; i < link->strays.count; i++)
    link->bulk.close(link->bulk.self, link->strays.items[i].c);
  weir_vec_free(link->alloc, &link->peers);
  weir_vec_free(link->alloc, &link->strays);
  weir_vec_free(link->alloc, &link->pasts);
  weir_free(link->alloc, link);
}

void weir_link_set_bulk(weir_link *link, const char *address) {
  snprintf(link->self.bulk_address, sizeof link->self.bulk_address, "%s",
           address);
}

size_t weir_link_count(const weir_link *link) {
  return link->peers.count;
}

weir_peer *weir_link_find(weir_link *link, weir_connection c, bool bulk) {
  for (size_t i = 0; i < link->peers.count; i++) {
    weir_peer *p = link->peers.items[i];
    if (p->state != WEIR_PEER_GONE && (bulk ? p->bulk : p->control) == c)
      return p;
  }
  return NULL;
}

static weir_status add_peer(weir_link *link, weir_peer **out, weir_error *err) {
  weir_peer *peer = weir_alloc_array(link->alloc, 1, sizeof *peer);
  *out = NULL;
  if (peer == NULL || !weir_vec_push(link->alloc, &link->peers, peer)) {
    weir_free(link->alloc, peer);
    return weir_fail_memory(err, sizeof *peer);
  }
  peer->link = link;
  peer->place = UINT32_MAX;
  peer->last = (weir_error)WEIR_ERROR_INIT;
  *out = peer;
  return WEIR_OK;
}

weir_status weir_link_dial(weir_link *link, int64_t now_ns,
                           const weir_link_target *target, weir_peer **out_peer,
                           weir_error *err) {
  weir_peer *peer = NULL;
  link->now_ns = now_ns;
  WEIR_TRY(add_peer(link, out_peer, err));
  peer = *out_peer;
  snprintf(peer->job, sizeof peer->job, "%s", target->job);
  peer->index = target->index;
  weir_link_name(peer->job, peer->index, peer->name);
  snprintf(peer->address, sizeof peer->address, "%s", target->address);
  memcpy(peer->job_id,
         target->job_id != NULL ? target->job_id : link->self.job_id,
         WEIR_JOB_ID_BYTES);
  peer->has_job = true;
  peer->until_ns = target->until_ns;
  peer->next_ns = now_ns;
  peer->retry_ns = link->options.retry_min_ns;
  return WEIR_OK;
}

void weir_link_drop(weir_peer *peer) {
  if (peer == NULL) return;
  peer->failed = false;
  weir_link_close(peer->link, peer);
  peer->state = WEIR_PEER_GONE;
}

void weir_link_reap(weir_link *link) {
  size_t kept = 0;
  for (size_t i = 0; i < link->peers.count; i++) {
    weir_peer *p = link->peers.items[i];
    if (p->state == WEIR_PEER_GONE && !p->failed)
      weir_free(link->alloc, p);
    else
      link->peers.items[kept++] = p;
  }
  link->peers.count = kept;
}

/* ---- Sending */

/* A frame that is lent to the transport. */
typedef struct lent_frame {
  const weir_allocator *alloc;
  weir_bytes frame;
} lent_frame;

static void frame_released(void *self) {
  lent_frame *l = self;
  const weir_allocator *alloc = l->alloc;
  weir_wire_free(alloc, l->frame);
  weir_free(alloc, l);
}

/* Of a large frame a copy costs more than memory that is given back. */
enum { kLentBytes = 32 << 10 };

weir_status weir_link_post(weir_link *link, weir_connection c, bool bulk,
                           uint64_t epoch, Weir__V1__Control *message,
                           weir_error *err) {
  weir_bytes frame;
  lent_frame *lent = NULL;
  message->epoch = epoch;
  WEIR_TRY(weir_wire_pack(link->alloc, message, &frame, err));
  weir_net_piece piece = {.data = frame.data, .size = frame.size};
  weir_transport *t = bulk ? link->bulk.transport : link->control;
  if (frame.size >= kLentBytes) lent = weir_alloc(link->alloc, sizeof *lent);
  if (lent != NULL) { /* without memory it is copied */
    *lent = (lent_frame){link->alloc, frame};
    piece.released = frame_released;
    piece.self = lent;
  }
  weir_status s = t->vt->send(t, c, &piece, 1, err);
  if (lent == NULL || s != WEIR_OK) weir_wire_free(link->alloc, frame);
  if (s != WEIR_OK) weir_free(link->alloc, lent);
  return s;
}

void weir_link_send(weir_peer *peer, uint64_t epoch,
                    Weir__V1__Control *message) {
  if (peer == NULL || peer->state != WEIR_PEER_UP) return;
  weir_error err = WEIR_ERROR_INIT;
  if (weir_link_post(peer->link, peer->control, false, epoch, message, &err) !=
      WEIR_OK)
    weir_link_give_up(peer, &err);
}

void weir_link_give_up(weir_peer *peer, const weir_error *why) {
  if (peer->state == WEIR_PEER_PROBED) return; /* it is lost already */
  weir_link_failed(peer->link, peer, why, true);
}

/* ---- Success and failure */

void weir_link_up(weir_link *link, weir_peer *peer) {
  assert(peer->state == WEIR_PEER_BULK);
  peer->state = WEIR_PEER_UP;
  peer->met = true;
  peer->heard_ns = link->now_ns;
  peer->ping_ns = link->now_ns + link->options.heartbeat_ns;
  link->events.up(link->events.self, peer);
}

void weir_link_failed(weir_link *link, weir_peer *peer, const weir_error *why,
                      bool for_good) {
  if (peer->state == WEIR_PEER_GONE) return;
  bool was_up = peer->state == WEIR_PEER_UP;
  if (why != &peer->last) weir_error_copy(&peer->last, why);
  weir_link_close(link, peer);
  if (!was_up && peer->incoming) {
    peer->state = WEIR_PEER_GONE; /* nobody has heard of it */
    /* One that left by itself may have been a probe. */
    if (strcmp(peer->last.id, "W7001") != 0 || peer->mute)
      weir_link_refused(link, peer->address, &peer->last);
  } else if (was_up || for_good) {
    peer->state = WEIR_PEER_GONE;
    peer->failed = true;
    link->failed = true;
  } else {
    peer->state = WEIR_PEER_WAITING;
    peer->next_ns = link->now_ns + peer->retry_ns;
    peer->retry_ns *= 2;
    if (peer->retry_ns > link->options.retry_max_ns)
      peer->retry_ns = link->options.retry_max_ns;
  }
}

void weir_link_on_connected(weir_link *link, int64_t now_ns, weir_connection c,
                            weir_sv address, bool incoming) {
  link->now_ns = now_ns;
  if (!incoming && weir_link_probed(link, c, NULL)) return;
  weir_peer *peer = NULL;
  weir_error err = WEIR_ERROR_INIT;
  if (incoming) {
    weir_link_make_room(link, false);
    weir_link_reap(link);
    if (add_peer(link, &peer, &err) != WEIR_OK) {
      link->control->vt->close(link->control, c);
      return;
    }
    peer->incoming = true;
    peer->control = c;
    snprintf(peer->name, sizeof peer->name, "a process at %.*s",
             WEIR_SV(address));
    snprintf(peer->address, sizeof peer->address, "%.*s", WEIR_SV(address));
  } else {
    peer = weir_link_find(link, c, false);
    if (peer == NULL) return;
    weir_link_greeting greeting;
    weir_link_greet(link, peer, false, &greeting);
    Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
    m.body_case = WEIR__V1__CONTROL__BODY_HELLO;
    m.hello = &greeting.hello;
    if (weir_link_check_names(link, c, false, &greeting.to, peer->name, &err) !=
        WEIR_OK) {
      weir_link_failed(link, peer, &err, true);
      return;
    }
    if (weir_link_post(link, c, false, 0, &m, &err) != WEIR_OK) {
      weir_link_failed(link, peer, &err, false);
      return;
    }
  }
  peer->state = WEIR_PEER_GREETING;
  peer->next_ns = now_ns + link->options.greet_ns;
}

static void pong(weir_peer *peer, uint64_t number) {
  Weir__V1__Pong body = WEIR__V1__PONG__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  body.number = number;
  m.body_case = WEIR__V1__CONTROL__BODY_PONG;
  m.pong = &body;
  weir_link_send(peer, 0, &m);
}

static void take_message(weir_link *link, weir_peer *peer,
                         const Weir__V1__Control *m) {
  peer->heard_ns = link->now_ns;
  if (peer->state == WEIR_PEER_GREETING) {
    weir_link_greeted(link, peer, m);
    return;
  }
  /* The side that accepts sends messages once it is up, and they may overtake
   * its reply on the bulk connection: they say as much. */
  if (peer->state == WEIR_PEER_BULK && !peer->incoming && peer->bulk != 0)
    weir_link_up(link, peer);
  weir_error err = WEIR_ERROR_INIT;
  if (peer->state == WEIR_PEER_GONE) return;
  if (peer->state != WEIR_PEER_UP ||
      m->body_case == WEIR__V1__CONTROL__BODY_HELLO ||
      m->body_case == WEIR__V1__CONTROL__BODY_HELLO_REPLY) {
    weir_fail(&err, WEIR_W7011, NULL, "%s sends a message out of its turn",
              peer->name);
    weir_link_failed(link, peer, &err, true);
  } else if (m->body_case == WEIR__V1__CONTROL__BODY_PING) {
    pong(peer, m->ping->number);
  } else if (m->body_case != WEIR__V1__CONTROL__BODY_PONG) {
    link->events.message(link->events.self, peer, m);
  }
}

void weir_link_on_frame(weir_link *link, int64_t now_ns, weir_connection c,
                        const weir_net_frame *frame) {
  link->now_ns = now_ns;
  weir_peer *peer = weir_link_find(link, c, false);
  if (peer == NULL) return;
  weir_wire_message m;
  weir_error err = WEIR_ERROR_INIT;
  if (weir_wire_unpack(link->alloc, frame, &m, &err) == WEIR_OK)
    take_message(link, peer, m.control);
  else
    weir_link_failed(link, peer, &err, false);
  weir_wire_message_release(&m);
  weir_link_reap(link);
}

static void closed(weir_link *link, weir_peer *peer, weir_close_reason why,
                   weir_sv text) {
  static const struct {
    const char *words;
    weir_error_id id; /* before it was up */
    bool for_good;
  } kWhy[] = {
      [WEIR_CLOSED_BY_PEER] = {"it has closed the connection", WEIR_W7001},
      [WEIR_CLOSED_UNREACHABLE] = {"cannot be reached", WEIR_W7001},
      [WEIR_CLOSED_REFUSED] = {"refused", WEIR_W7001},
      [WEIR_CLOSED_RESET] = {"the connection was reset", WEIR_W7001},
      [WEIR_CLOSED_FOREIGN] = {"refused", WEIR_W7061, true},
      [WEIR_CLOSED_EXPIRED] = {"refused", WEIR_W7062, true},
      [WEIR_CLOSED_NOT_TRUSTED] = {"we are refused", WEIR_W7064},
      [WEIR_CLOSED_NO_TLS] = {"refused", WEIR_W7065, true}};
  WEIR_TABLE_OF(kWhy, WEIR_CLOSE_REASONS);
  weir_error err = WEIR_ERROR_INIT;
  bool up = peer->state == WEIR_PEER_UP;
  weir_fail(&err, up ? WEIR_W7020 : kWhy[why].id, NULL, "%s: %s%s%.*s",
            peer->name, kWhy[why].words, text.size > 0 ? ": " : "",
            WEIR_SV(text));
  peer->orderly = why == WEIR_CLOSED_BY_PEER;
  if (!weir_link_probe(link, peer, &err))
    weir_link_failed(link, peer, &err, kWhy[why].for_good);
  weir_link_reap(link);
}

void weir_link_on_closed(weir_link *link, int64_t now_ns, weir_connection c,
                         weir_close_reason why, weir_sv text) {
  link->now_ns = now_ns;
  if (weir_link_probed(link, c, &text)) return;
  weir_peer *peer = weir_link_find(link, c, false);
  if (peer == NULL) return;
  peer->control = 0;
  closed(link, peer, why, text);
}

void weir_link_bulk_on_closed(weir_link *link, int64_t now_ns,
                              weir_connection c, weir_close_reason why,
                              weir_sv text) {
  link->now_ns = now_ns;
  for (size_t i = 0; i < link->strays.count; i++) {
    if (link->strays.items[i].c != c) continue;
    link->strays.items[i] = link->strays.items[--link->strays.count];
    return;
  }
  weir_peer *peer = weir_link_find(link, c, true);
  if (peer == NULL) return;
  peer->bulk = 0;
  closed(link, peer, why, text);
}
