/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "runtime/dist/link/link_internal.h"

/* The work of time in a link: attempts to dial, the end of greetings, pings,
 * and the loss of silent peers.
 *
 * Every wait ends: a dialled peer at its until_ns, a greeting after greet_ns, a
 * peer that is up after dead_ns of silence, a probe after a heartbeat. A
 * process that was stopped itself must not take its own sleep for the silence
 * of others: when ticks lie far apart, the silence of all peers counts from
 * now.
 */

static void attempt(weir_link *link, weir_peer *peer) {
  weir_error err = WEIR_ERROR_INIT;
  weir_connection c = 0;
  weir_transport *t = link->control;
  peer->attempts++;
  weir_status s = t->vt->connect(t, weir_sv_from(peer->address), &c, &err);
  if (s != WEIR_OK) {
    weir_link_failed(link, peer, &err,
                     s == WEIR_INVALID_ARGUMENT || s == WEIR_UNAUTHENTICATED);
    return;
  }
  peer->control = c;
  peer->state = WEIR_PEER_DIALLING;
}

static void ping(weir_link *link, weir_peer *peer) {
  Weir__V1__Ping body = WEIR__V1__PING__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  body.number = ++link->pings;
  m.body_case = WEIR__V1__CONTROL__BODY_PING;
  m.ping = &body;
  peer->ping_ns = link->now_ns + link->options.heartbeat_ns;
  weir_link_send(peer, 0, &m);
}

static void silent(weir_link *link, weir_peer *peer) {
  weir_error err = WEIR_ERROR_INIT;
  weir_fail(&err, WEIR_W7020, NULL, "%s has not answered for %.1f s",
            peer->name, (double)(link->now_ns - peer->heard_ns) / 1e9);
  weir_link_failed(link, peer, &err, true);
}

static void time_over(weir_link *link, weir_peer *peer) {
  if (peer->last.id[0] == '\0')
    weir_fail(&peer->last, WEIR_W7001, NULL, "%s has not answered at %s",
              peer->name, peer->address);
  weir_link_failed(link, peer, &peer->last, true);
}

static void no_hello(weir_link *link, weir_peer *peer) {
  weir_error err = WEIR_ERROR_INIT;
  double seconds = (double)link->options.greet_ns / 1e9;
  peer->mute = peer->incoming;
  if (peer->incoming)
    weir_fail(&err, WEIR_W7001, NULL, "it %s within %g s",
              peer->state == WEIR_PEER_BULK ? "made no bulk connection"
                                            : "said no Hello",
              seconds);
  else
    weir_fail(&err, WEIR_W7001, NULL, "%s is connected but says no Hello",
              peer->name);
  weir_link_failed(link, peer, &err, false);
}

static void tick_peer(weir_link *link, weir_peer *peer) {
  int64_t now = link->now_ns;
  bool dialled = !peer->incoming && peer->state < WEIR_PEER_UP;
  if (dialled && now >= peer->until_ns) {
    time_over(link, peer);
  } else if (peer->state == WEIR_PEER_WAITING) {
    if (now >= peer->next_ns) attempt(link, peer);
  } else if (peer->state == WEIR_PEER_GREETING ||
             peer->state == WEIR_PEER_BULK) {
    if (now >= peer->next_ns) no_hello(link, peer);
  } else if (peer->state == WEIR_PEER_UP) {
    if (now - peer->heard_ns >= link->options.dead_ns)
      silent(link, peer);
    else if (now >= peer->ping_ns)
      ping(link, peer);
  } else if (peer->state == WEIR_PEER_PROBED && now >= peer->next_ns) {
    weir_link_probe_late(link, peer);
  }
}

static int64_t next_of(const weir_link *link, const weir_peer *peer) {
  int64_t next = INT64_MAX;
  if (peer->state == WEIR_PEER_WAITING || peer->state == WEIR_PEER_GREETING ||
      peer->state == WEIR_PEER_BULK || peer->state == WEIR_PEER_PROBED)
    next = peer->next_ns;
  if (peer->state == WEIR_PEER_UP) {
    next = peer->heard_ns + link->options.dead_ns;
    if (peer->ping_ns < next) next = peer->ping_ns;
  } else if (!peer->incoming && peer->state < WEIR_PEER_UP &&
             peer->until_ns < next) {
    next = peer->until_ns;
  }
  return next;
}

static void forgive_own_sleep(weir_link *link) {
  int64_t slept = link->now_ns - link->ticked_ns;
  if (link->ticked_ns != 0 && slept > link->options.suspect_ns)
    for (size_t i = 0; i < link->peers.count; i++)
      link->peers.items[i]->heard_ns = link->now_ns;
  link->ticked_ns = link->now_ns;
}

/* Reports failed peers; their receivers may make others fail. */
static void report(weir_link *link) {
  while (link->failed) {
    link->failed = false;
    for (size_t i = 0; i < link->peers.count; i++) {
      weir_peer *p = link->peers.items[i];
      if (!p->failed) continue;
      p->failed = false;
      link->events.lost(link->events.self, p, &p->last);
    }
  }
}

static void drop_strays(weir_link *link) {
  size_t kept = 0;
  for (size_t i = 0; i < link->strays.count; i++) {
    weir_link_stray stray = link->strays.items[i];
    if (link->now_ns < stray.until_ns) {
      link->strays.items[kept++] = stray;
      continue;
    }
    weir_error err = WEIR_ERROR_INIT;
    weir_fail(&err, WEIR_W7001, NULL, "it said no Hello within %g s",
              (double)link->options.greet_ns / 1e9);
    weir_link_refused(link, "a bulk connection", &err);
    link->bulk.close(link->bulk.self, stray.c);
  }
  link->strays.count = kept;
}

int64_t weir_link_tick(weir_link *link, int64_t now_ns) {
  link->now_ns = now_ns;
  forgive_own_sleep(link);
  for (size_t i = 0; i < link->peers.count; i++)
    tick_peer(link, link->peers.items[i]);
  drop_strays(link);
  /* Whoever hears of a loss may have something to do before the next event. */
  int64_t next = link->failed ? now_ns : INT64_MAX;
  report(link);
  weir_link_reap(link);
  int64_t told = weir_link_tell_refused(link);
  if (told < next) next = told;
  for (size_t i = 0; i < link->peers.count; i++) {
    int64_t at = next_of(link, link->peers.items[i]);
    if (at < next) next = at;
  }
  for (size_t i = 0; i < link->strays.count; i++)
    if (link->strays.items[i].until_ns < next)
      next = link->strays.items[i].until_ns;
  return next;
}

bool weir_peer_is_suspect(const weir_peer *peer, int64_t now_ns) {
  return peer->state >= WEIR_PEER_UP &&
         now_ns - peer->heard_ns >= peer->link->options.suspect_ns;
}

void weir_peer_describe(const weir_peer *peer, char *text, size_t size) {
  if (peer->state == WEIR_PEER_UP)
    snprintf(text, size, "up");
  else if (peer->last.id[0] != '\0')
    snprintf(text, size, "%s", peer->last.message);
  else
    snprintf(text, size, "never answered");
}
