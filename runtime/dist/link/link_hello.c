/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/dist/link/link_internal.h"
#include "runtime/net/wire_error.h"

/* Hello and HelloReply: whether two processes belong together.
 *
 * Both sides check the same things, the acceptor in Hello and the dialler in
 * HelloReply, so neither trusts the other's check. A refusal is for good
 * (W7023) when trying again cannot help, and for now (W7024) when the process
 * before this one is not known to be dead yet.
 *
 * Incarnations are random, so of two processes of one task the one that came
 * last is the newer. While the older one is up, the newer one is refused for
 * now: the older one is gone soon, by a reset or by silence; or the older one's
 * link ends at once (options.replaces). One that was replaced is refused for
 * good.
 *
 * An observer greets as a driver does and is up without a bulk connection. */

void weir_link_name(const char *job, uint32_t index,
                    char name[WEIR_TASK_NAME_BYTES]) {
  if (job[0] == '\0')
    snprintf(name, WEIR_TASK_NAME_BYTES, "the driver");
  else
    snprintf(name, WEIR_TASK_NAME_BYTES, "%s:%" PRIu32, job, index);
}

void weir_link_greet(const weir_link *link, const weir_peer *to, bool bulk,
                     weir_link_greeting *out) {
  const weir_link_self *self = &link->self;
  *out = (weir_link_greeting){.hello = WEIR__V1__HELLO__INIT,
                              .from = WEIR__V1__TASK__INIT,
                              .to = WEIR__V1__TASK__INIT};
  out->from.job = (char *)self->job;
  out->from.index = self->index;
  out->to.job = (char *)to->job;
  out->to.index = to->index;
  Weir__V1__Hello *h = &out->hello;
  h->protocol_min = self->protocol_min;
  h->protocol_max = self->protocol_max;
  h->build = (char *)(self->build != NULL ? self->build : "");
  h->profile = self->profile;
  /* An answer is about the job of the one who asks. */
  h->job_id.data =
      (uint8_t *)(self->one_job || !to->has_job ? self->job_id : to->job_id);
  h->job_id.len = WEIR_JOB_ID_BYTES;
  h->from = &out->from;
  h->to = &out->to;
  h->incarnation = self->incarnation;
  h->cluster_hash = self->cluster_hash;
  h->bulk_address = (char *)self->bulk_address;
  h->bulk = bulk;
  h->observes = self->observes;
}

static bool same_task(const char *job, uint32_t index, const char *other,
                      uint32_t other_index) {
  return index == other_index && strcmp(job, other) == 0;
}

static weir_link_past *past_of(weir_link *link, const char *job,
                               uint32_t index) {
  for (size_t i = 0; i < link->pasts.count; i++) {
    weir_link_past *p = &link->pasts.items[i];
    if (same_task(p->job, p->index, job, index)) return p;
  }
  return NULL;
}

/* Refuses a process whose task has another one that counts. Drivers are many:
 * the task decides among them at Begin. */
static weir_status check_incarnation(weir_link *link,
                                     const Weir__V1__Hello *hello,
                                     const char *name, weir_error *err) {
  const Weir__V1__Task *from = hello->from;
  if (from->job[0] == '\0') return WEIR_OK;
  const weir_link_past *past = past_of(link, from->job, from->index);
  if (past == NULL || past->present == hello->incarnation) return WEIR_OK;
  for (size_t i = 0; i < WEIR_LINK_PASTS; i++)
    if (past->gone[i] == hello->incarnation)
      return weir_fail(err, WEIR_W7023, NULL,
                       "an older process of %s: another has taken its place",
                       name);
  for (size_t i = 0; i < link->peers.count && !link->options.replaces; i++) {
    const weir_peer *p = link->peers.items[i];
    if (p->state == WEIR_PEER_UP && p->incarnation == past->present &&
        same_task(p->job, p->index, from->job, from->index))
      return weir_fail(err, WEIR_W7024, NULL,
                       "another process of %s is connected", name);
  }
  return WEIR_OK;
}

static weir_status check_ids(const weir_link *link,
                             const Weir__V1__Hello *hello, const char *name,
                             weir_error *err) {
  const weir_link_self *self = &link->self;
  if (hello->protocol_min > self->protocol_max ||
      hello->protocol_max < self->protocol_min)
    return weir_fail(err, WEIR_W7023, NULL,
                     "%s (%s) speaks versions %" PRIu32 " to %" PRIu32
                     " of the protocol, %s speaks %" PRIu32 " to %" PRIu32,
                     name, hello->build, hello->protocol_min,
                     hello->protocol_max, self->build, self->protocol_min,
                     self->protocol_max);
  if (hello->job_id.len != WEIR_JOB_ID_BYTES)
    return weir_fail(err, WEIR_W7023, NULL, "%s names its job by %zu bytes",
                     name, hello->job_id.len);
  if (self->one_job &&
      memcmp(hello->job_id.data, self->job_id, WEIR_JOB_ID_BYTES) != 0)
    return weir_fail(err, WEIR_W7023, NULL,
                     "%s belongs to another run of a cluster", name);
  if (hello->cluster_hash != self->cluster_hash)
    return weir_fail(err, WEIR_W7023, NULL, "%s was started with another %s",
                     name,
                     self->hashed != NULL ? self->hashed : "cluster file");
  if (hello->incarnation == 0 || hello->incarnation == self->incarnation)
    return weir_fail(err, WEIR_W7023, NULL,
                     "%s is this very process, or has no number", name);
  return WEIR_OK;
}

weir_status weir_link_check_hello(weir_link *link, const Weir__V1__Hello *hello,
                                  weir_error *err) {
  char name[WEIR_TASK_NAME_BYTES];
  if (hello->from == NULL || hello->to == NULL ||
      strlen(hello->from->job) >= WEIR_JOB_BYTES ||
      strlen(hello->bulk_address) >= WEIR_NET_ADDRESS_BYTES)
    return weir_fail(err, WEIR_W7023, NULL,
                     "a Hello without a task or with a name that is too long");
  weir_link_name(hello->from->job, hello->from->index, name);
  WEIR_TRY(check_ids(link, hello, name, err));
  return check_incarnation(link, hello, name, err);
}

void weir_link_keep_hello(weir_peer *peer, const Weir__V1__Hello *hello) {
  snprintf(peer->job, sizeof peer->job, "%s", hello->from->job);
  peer->index = hello->from->index;
  weir_link_name(peer->job, peer->index, peer->name);
  if (peer->incoming) {
    memcpy(peer->job_id, hello->job_id.data, WEIR_JOB_ID_BYTES);
    peer->has_job = true;
  }
  peer->incarnation = hello->incarnation;
  peer->profile = hello->profile;
  peer->observes = hello->observes;
  if (peer->observes)
    snprintf(peer->name, sizeof peer->name, "an observer at %.60s",
             peer->address);
  snprintf(peer->bulk_address, sizeof peer->bulk_address, "%s",
           hello->bulk_address);
}

weir_status weir_link_note(weir_link *link, const weir_peer *peer,
                           weir_error *err) {
  if (peer->job[0] == '\0') return WEIR_OK;
  weir_link_past *past = past_of(link, peer->job, peer->index);
  if (past == NULL) {
    weir_link_past fresh = {.index = peer->index, .present = peer->incarnation};
    snprintf(fresh.job, sizeof fresh.job, "%s", peer->job);
    if (link->pasts.count >= WEIR_LINK_TASKS)
      return weir_fail(err, WEIR_W7030, NULL,
                       "%d tasks have been here, at most that many are kept",
                       WEIR_LINK_TASKS);
    if (!weir_vec_push(link->alloc, &link->pasts, fresh))
      return weir_fail_memory(err, sizeof fresh);
    return WEIR_OK;
  }
  if (past->present == peer->incarnation) return WEIR_OK;
  memmove(past->gone + 1, past->gone,
          (WEIR_LINK_PASTS - 1) * sizeof past->gone[0]);
  past->gone[0] = past->present;
  past->present = peer->incarnation;
  return WEIR_OK;
}

/* Answers a Hello on connection |c|. */
static weir_status answer(weir_link *link, weir_connection c, bool bulk,
                          const weir_peer *to, const weir_error *refused) {
  weir_link_greeting greeting;
  weir_link_greet(link, to, bulk, &greeting);
  Weir__V1__Error words = WEIR__V1__ERROR__INIT;
  Weir__V1__HelloReply reply = WEIR__V1__HELLO_REPLY__INIT;
  reply.protocol = link->self.protocol_max;
  reply.self = &greeting.hello;
  if (refused != NULL) {
    weir_wire_error_put(refused, &words);
    reply.refused = &words;
  }
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  m.body_case = WEIR__V1__CONTROL__BODY_HELLO_REPLY;
  m.hello_reply = &reply;
  return weir_link_post(link, c, bulk, 0, &m, NULL);
}

/* The task that |hello| says it is of. */
static const char *name_of(const Weir__V1__Hello *hello,
                           char name[WEIR_TASK_NAME_BYTES]) {
  weir_link_name(hello->from->job, hello->from->index, name);
  return name;
}

/* |peer| takes the place of |p|: the same process for the same job, whose other
 * end is gone if it dials again, or a newer one of the task. */
static bool takes_place(const weir_link *link, const weir_peer *peer,
                        const weir_peer *p) {
  if (p == peer || !p->incoming || p->state < WEIR_PEER_BULK ||
      p->state > WEIR_PEER_UP ||
      !same_task(p->job, p->index, peer->job, peer->index))
    return false;
  return link->options.replaces ||
         (p->incarnation == peer->incarnation &&
          memcmp(p->job_id, peer->job_id, WEIR_JOB_ID_BYTES) == 0);
}

static void end_older(weir_link *link, const weir_peer *peer) {
  for (size_t i = 0; i < link->peers.count; i++) {
    weir_peer *p = link->peers.items[i];
    weir_error err = WEIR_ERROR_INIT;
    if (!takes_place(link, peer, p)) continue;
    weir_fail(&err, WEIR_W7020, NULL,
              p->incarnation == peer->incarnation
                  ? "%s has connected anew"
                  : "%s: another process has taken its place",
              p->name);
    weir_link_failed(link, p, &err, true);
  }
}

/* The side that accepts: checks, answers, and ends older connections. */
static void accept_hello(weir_link *link, weir_peer *peer,
                         const Weir__V1__Hello *hello) {
  char who[WEIR_TASK_NAME_BYTES];
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = weir_link_check_hello(link, hello, &err);
  if (s == WEIR_OK)
    s = weir_link_check_names(link, peer->control, false, hello->from,
                              name_of(hello, who), &err);
  if (s == WEIR_OK && !same_task(hello->to->job, hello->to->index,
                                 link->self.job, link->self.index)) {
    char mine[WEIR_TASK_NAME_BYTES], want[WEIR_TASK_NAME_BYTES];
    weir_link_name(link->self.job, link->self.index, mine);
    weir_link_name(hello->to->job, hello->to->index, want);
    s = weir_fail(&err, WEIR_W7023, NULL, "%s answers here, not %s", mine,
                  want);
  }
  if (s == WEIR_OK && hello->bulk)
    s = weir_fail(&err, WEIR_W7023, NULL,
                  "bulk frames go to the address in HelloReply");
  if (s == WEIR_OK) s = weir_link_check_room(link, peer, hello, &err);
  if (s == WEIR_OK && link->options.admits != NULL)
    s = link->options.admits(link->events.self, hello->from->job,
                             hello->from->index, &err);
  if (s == WEIR_OK && hello->observes && hello->from->job[0] != '\0')
    s = weir_fail(&err, WEIR_W7023, NULL, "a task does not observe");
  if (s == WEIR_OK) {
    weir_link_keep_hello(peer, hello);
    s = weir_link_note(link, peer, &err);
  }
  if (s != WEIR_OK) {
    (void)answer(link, peer->control, false, peer, &err);
    weir_link_refused(link, peer->address, &err);
    weir_link_drop(peer); /* after all frames before it */
    return;
  }
  end_older(link, peer);
  peer->state = WEIR_PEER_BULK;
  s = answer(link, peer->control, false, peer, NULL);
  if (s != WEIR_OK)
    weir_link_failed(link, peer, &peer->last, true);
  else if (link->self.bulk_address[0] == '\0' || peer->observes)
    weir_link_up(link, peer);
}

/* Whether the one that answers is the one that was dialled. */
static weir_status check_reply(weir_link *link, const weir_peer *peer,
                               const Weir__V1__HelloReply *reply,
                               weir_error *err) {
  if (weir_wire_error_is(reply->refused))
    return weir_wire_error_get(reply->refused, err);
  if (reply->self == NULL)
    return weir_fail(err, WEIR_W7023, NULL, "%s does not say who it is",
                     peer->name);
  WEIR_TRY(weir_link_check_hello(link, reply->self, err));
  const Weir__V1__Task *from = reply->self->from;
  if (!same_task(from->job, from->index, peer->job, peer->index)) {
    char name[WEIR_TASK_NAME_BYTES];
    weir_link_name(from->job, from->index, name);
    return weir_fail(err, WEIR_W7023, NULL, "%s answers there, not %s", name,
                     peer->name);
  }
  if (reply->protocol < link->self.protocol_min ||
      reply->protocol > link->self.protocol_max)
    return weir_fail(err, WEIR_W7023, NULL,
                     "%s chose version %" PRIu32 " of the protocol", peer->name,
                     reply->protocol);
  return WEIR_OK;
}

static void accept_reply(weir_link *link, weir_peer *peer,
                         const Weir__V1__HelloReply *reply) {
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = check_reply(link, peer, reply, &err);
  if (s == WEIR_OK) {
    weir_link_keep_hello(peer, reply->self);
    s = weir_link_note(link, peer, &err);
  }
  if (s != WEIR_OK) {
    bool for_good = strcmp(err.id, "W7024") != 0 &&
                    strcmp(err.id, "W7030") != 0 &&
                    strcmp(err.id, "W6001") != 0;
    weir_link_failed(link, peer, &err, for_good);
    return;
  }
  peer->state = WEIR_PEER_BULK;
  if (peer->bulk_address[0] == '\0' || link->self.observes)
    weir_link_up(link, peer);
  else
    link->bulk.connect(link->bulk.self, peer->tag = ++link->tags,
                       peer->bulk_address);
}

void weir_link_greeted(weir_link *link, weir_peer *peer,
                       const Weir__V1__Control *m) {
  bool reply = m->body_case == WEIR__V1__CONTROL__BODY_HELLO_REPLY;
  if (reply != !peer->incoming ||
      (!reply && m->body_case != WEIR__V1__CONTROL__BODY_HELLO)) {
    weir_error err = WEIR_ERROR_INIT;
    weir_fail(&err, WEIR_W7011, NULL, "%s does not begin with a Hello",
              peer->name);
    weir_link_failed(link, peer, &err, true);
  } else if (reply) {
    accept_reply(link, peer, m->hello_reply);
  } else {
    accept_hello(link, peer, m->hello);
  }
}

/* ---- The same on bulk connections */

static weir_peer *whose_bulk(weir_link *link, const Weir__V1__Hello *hello) {
  for (size_t i = 0; i < link->peers.count; i++) {
    weir_peer *p = link->peers.items[i];
    if (p->incoming && p->state == WEIR_PEER_BULK && p->bulk == 0 &&
        p->incarnation == hello->incarnation &&
        memcmp(p->job_id, hello->job_id.data, WEIR_JOB_ID_BYTES) == 0 &&
        same_task(p->job, p->index, hello->from->job, hello->from->index))
      return p;
  }
  return NULL;
}

static bool take_stray(weir_link *link, weir_connection c) {
  for (size_t i = 0; i < link->strays.count; i++) {
    if (link->strays.items[i].c != c) continue;
    link->strays.items[i] = link->strays.items[--link->strays.count];
    return true;
  }
  return false;
}

static void refuse_bulk(weir_link *link, weir_connection c,
                        const weir_error *why) {
  weir_link_refused(link, "a bulk connection", why);
  link->bulk.close(link->bulk.self, c);
}

static void bulk_hello(weir_link *link, weir_connection c,
                       const Weir__V1__Control *m) {
  weir_error err = WEIR_ERROR_INIT;
  weir_peer *peer = NULL;
  char who[WEIR_TASK_NAME_BYTES];
  if (m->body_case == WEIR__V1__CONTROL__BODY_HELLO && m->hello->bulk &&
      weir_link_check_hello(link, m->hello, &err) == WEIR_OK &&
      weir_link_check_names(link, c, true, m->hello->from,
                            name_of(m->hello, who), &err) == WEIR_OK)
    peer = whose_bulk(link, m->hello);
  if (peer == NULL) { /* nothing to say: its control connection is gone */
    if (err.id[0] == '\0')
      weir_fail(&err, WEIR_W7011, NULL,
                "its first frame names no peer of ours");
    refuse_bulk(link, c, &err);
    return;
  }
  peer->bulk = c;
  link->bulk.opened(link->bulk.self, c, peer);
  if (answer(link, c, true, peer, NULL) != WEIR_OK) {
    weir_fail(&err, WEIR_W7020, NULL, "%s: no bulk connection", peer->name);
    weir_link_failed(link, peer, &err, true);
  } else {
    weir_link_up(link, peer);
  }
}

static void bulk_reply(weir_link *link, weir_peer *peer,
                       const Weir__V1__Control *m) {
  if (peer->state == WEIR_PEER_UP) return; /* its messages came first */
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = m->body_case == WEIR__V1__CONTROL__BODY_HELLO_REPLY
                      ? check_reply(link, peer, m->hello_reply, &err)
                      : weir_fail(&err, WEIR_W7011, NULL,
                                  "%s does not begin with a Hello", peer->name);
  if (s == WEIR_OK && m->hello_reply->self->incarnation != peer->incarnation)
    s = weir_fail(&err, WEIR_W7024, NULL, "%s has been started anew",
                  peer->name);
  if (s != WEIR_OK)
    weir_link_failed(link, peer, &err, false);
  else
    weir_link_up(link, peer);
}

void weir_link_bulk_on_frame(weir_link *link, int64_t now_ns, weir_connection c,
                             const weir_net_frame *frame) {
  link->now_ns = now_ns;
  weir_peer *peer = weir_link_find(link, c, true);
  bool stray = peer == NULL && take_stray(link, c);
  if (peer == NULL && !stray) return;
  weir_wire_message m;
  weir_error err = WEIR_ERROR_INIT;
  if (weir_wire_unpack(link->alloc, frame, &m, &err) != WEIR_OK) {
    if (peer != NULL)
      weir_link_failed(link, peer, &err, false);
    else
      refuse_bulk(link, c, &err);
  } else if (stray) {
    bulk_hello(link, c, m.control);
  } else if (!peer->incoming) {
    bulk_reply(link, peer, m.control);
  }
  weir_wire_message_release(&m);
  weir_link_reap(link);
}

void weir_link_bulk_on_connected(weir_link *link, int64_t now_ns, uint64_t tag,
                                 weir_connection c) {
  link->now_ns = now_ns;
  weir_error err = WEIR_ERROR_INIT;
  if (tag == 0) {
    weir_link_make_room(link, true);
    weir_link_stray stray = {c, now_ns + link->options.greet_ns};
    if (!weir_vec_push(link->alloc, &link->strays, stray))
      link->bulk.close(link->bulk.self, c);
    return;
  }
  weir_peer *peer = NULL;
  for (size_t i = 0; i < link->peers.count; i++)
    if (link->peers.items[i]->tag == tag) peer = link->peers.items[i];
  if (peer == NULL || peer->state != WEIR_PEER_BULK || peer->bulk != 0) {
    if (c != 0) link->bulk.close(link->bulk.self, c);
    return;
  }
  weir_status s = WEIR_OK;
  if (c == 0) {
    s = weir_fail(&err, WEIR_W7001, NULL, "%s takes no bulk connection at %s",
                  peer->name, peer->bulk_address);
  } else {
    peer->bulk = c;
    link->bulk.opened(link->bulk.self, c, peer);
    weir_link_greeting greeting;
    weir_link_greet(link, peer, true, &greeting);
    Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
    m.body_case = WEIR__V1__CONTROL__BODY_HELLO;
    m.hello = &greeting.hello;
    s = weir_link_check_names(link, c, true, &greeting.to, peer->name, &err);
    if (s == WEIR_OK) s = weir_link_post(link, c, true, 0, &m, &err);
  }
  if (s != WEIR_OK)
    weir_link_failed(link, peer, &err, s == WEIR_UNAUTHENTICATED);
  weir_link_reap(link);
}
