/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "runtime/dist/ps/server_internal.h"

/* Pushes applied one at a time (async, bounded).
 *
 * Idea: a link keeps the order of messages, so a mark for each worker, its last
 * push that is applied, tells a push that comes again from one that is new; no
 * set of numbers grows (ps-lite keeps one for ever). Invariant: a worker's
 * pushes up to its mark are in the variables, each once, and no other;
 * |received| is the mark, or the last of its pushes in the queue.
 *
 * A push may hold a pull, which is made when the push has its verdict: so a
 * worker that goes on has its answer and new values in one message.
 *
 * Bounded: the clocks of Ho et al., "More Effective Distributed ML via a Stale
 * Synchronous Parallel Parameter Server", NIPS 2013. Cost: a pull looks at each
 * worker. */

static weir_ps_message *head(weir_ps_server *s) {
  return &s->queue[s->queue_first];
}

static void pop(weir_ps_server *s) {
  s->queue_first = (s->queue_first + 1) % s->queue_capacity;
  s->queue_count--;
}

static void reply(weir_ps_server *s, const weir_ps_message *push,
                  weir_ps_verdict verdict, uint64_t staleness) {
  weir_ps_message m = {.kind = WEIR_PS_PUSHED,
                       .worker = push->worker,
                       .incarnation = push->incarnation,
                       .seq = push->seq,
                       .run = push->run,
                       .version = s->version,
                       .verdict = verdict,
                       .staleness = staleness};
  if (push->request != 0 && weir_ps_server_pulls(s, push)) {
    m.request = push->request;
    m.newer = true;
  }
  weir_ps_server_send(s, (weir_ps_task){WEIR_PS_WORKER, push->worker}, &m);
}

bool weir_ps_async_knows(weir_ps_server *s, const weir_ps_message *m) {
  weir_ps_client *c = &s->clients[m->worker];
  if (m->incarnation <= c->fenced || m->incarnation < c->incarnation)
    return false;
  if (m->incarnation == c->incarnation) return true;
  memset(c, 0, sizeof *c);
  c->incarnation = m->incarnation;
  if (s->mode != WEIR_PS_SYNC)
    s->marks[m->worker] = (weir_ps_mark){.incarnation = m->incarnation};
  return true;
}

/* ---- Staleness */

static void count_staleness(weir_ps_server *s, uint64_t staleness) {
  uint32_t bucket = 0;
  for (uint64_t rest = staleness; rest > 0; rest >>= 1) bucket++;
  if (bucket >= WEIR_PS_BUCKETS) bucket = WEIR_PS_BUCKETS - 1;
  s->counts.staleness[bucket]++;
  if (staleness > s->counts.staleness_max) s->counts.staleness_max = staleness;
}

static uint64_t staleness_of(const weir_ps_server *s,
                             const weir_ps_message *push) {
  return push->version < s->version ? s->version - push->version : 0;
}

/* ---- The queue */

static void refuse_stale(weir_ps_server *s, const weir_ps_message *push) {
  s->counts.stale++;
  s->clients[push->worker].received = push->seq - 1;
  weir_ps_server_drop(s, push->data);
  reply(s, push, WEIR_PS_STALE, staleness_of(s, push));
}

static void pump(weir_ps_server *s) {
  while (!s->applying && s->queue_count > 0 && !s->dead) {
    weir_ps_message *push = head(s);
    const weir_ps_config *config = &s->options.config;
    if (push->data == NULL && push->kind == WEIR_PS_KIND_COUNT) {
      pop(s); /* of a worker that is out */
      continue;
    }
    if (config->limited && staleness_of(s, push) > config->max_staleness) {
      refuse_stale(s, push);
      pop(s);
      continue;
    }
    if (weir_ps_server_dies(s, WEIR_PS_FP_SERVER_BEFORE_APPLY)) return;
    if (s->late_mark.seq != 0) s->marks[s->late_worker] = s->late_mark;
    s->late_mark.seq = 0;
    s->applying = true;
    push->staleness = staleness_of(s, push);
    s->calls.apply(s->calls.self, s->ticket, push);
    push->data = NULL; /* the host's */
  }
}

void weir_ps_async_push(weir_ps_server *s, const weir_ps_message *m) {
  weir_ps_client *c = &s->clients[m->worker];
  if (weir_ps_server_dies(s, WEIR_PS_FP_SERVER_PUSH)) {
    weir_ps_server_drop(s, m->data);
    return;
  }
  if (m->seq <= c->received || m->seq != c->received + 1 ||
      s->queue_count == s->queue_capacity) {
    bool again = m->seq > c->received;
    bool here = m->seq <= s->marks[m->worker].seq;
    weir_ps_server_drop(s, m->data);
    if (!again) s->counts.duplicates++;
    if (here || again) reply(s, m, here ? WEIR_PS_APPLIED : WEIR_PS_AGAIN, 0);
    return;
  }
  c->received = m->seq;
  s->queue[(s->queue_first + s->queue_count++) % s->queue_capacity] = *m;
  if (weir_ps_server_bug(s, WEIR_PS_FP_BUG_ACK_EARLY))
    reply(s, m, WEIR_PS_APPLIED, 0);
  pump(s);
}

static void send_fenced(weir_ps_server *s, uint32_t worker) {
  const weir_ps_mark *mark = &s->marks[worker];
  weir_ps_client *c = &s->clients[worker];
  bool same = mark->incarnation == c->fenced;
  weir_ps_message m = {.kind = WEIR_PS_FENCED,
                       .epoch = s->epoch,
                       .worker = worker,
                       .incarnation = c->fenced,
                       .seq = same ? mark->seq : 0,
                       .lease = same ? mark->lease : 0,
                       .run = same ? mark->run : 0};
  c->fencing = false;
  weir_ps_server_send(s, (weir_ps_task){WEIR_PS_CHIEF, s->chief}, &m);
}

void weir_ps_server_applied(weir_ps_server *s, uint64_t ticket) {
  if (s->dead || ticket != s->ticket || !s->applying) return;
  if (weir_ps_server_dies(s, WEIR_PS_FP_SERVER_AFTER_APPLY)) return;
  weir_ps_message push = *head(s);
  weir_ps_client *c = &s->clients[push.worker];
  weir_ps_mark mark = {push.incarnation, push.seq, push.lease, push.run};
  uint64_t staleness = staleness_of(s, &push);
  pop(s);
  s->applying = false;
  count_staleness(s, staleness);
  /* One event: the version, the variables and the mark. */
  s->version++;
  s->counts.applied++;
  s->calls.publish(s->calls.self, s->version);
  if (weir_ps_server_bug(s, WEIR_PS_FP_BUG_LATE_MARK)) {
    s->late_mark = mark;
    s->late_worker = push.worker;
  } else {
    s->marks[push.worker] = mark;
  }
  if (c->active && c->clock <= push.clock) c->clock = push.clock + 1;
  if (weir_ps_server_dies(s, WEIR_PS_FP_SERVER_BEFORE_PUBLISH)) return;
  weir_ps_server_settle(s);
  if (s->dead) return; /* of a failpoint of the save */
  if (!weir_ps_server_bug(s, WEIR_PS_FP_BUG_ACK_EARLY))
    reply(s, &push, WEIR_PS_APPLIED, staleness);
  if (c->fencing) send_fenced(s, push.worker);
  if (s->mode == WEIR_PS_BOUNDED) weir_ps_server_wake(s);
  pump(s);
}

void weir_ps_async_fence(weir_ps_server *s, const weir_ps_message *m) {
  if (weir_ps_server_dies(s, WEIR_PS_FP_SERVER_FENCE)) return;
  weir_ps_client *c = &s->clients[m->worker];
  if (m->incarnation > c->fenced) c->fenced = m->incarnation;
  if (c->incarnation > c->fenced) return; /* an old message */
  for (uint32_t i = s->applying ? 1 : 0; i < s->queue_count; i++) {
    weir_ps_message *push = &s->queue[(s->queue_first + i) % s->queue_capacity];
    if (push->worker != m->worker || push->kind == WEIR_PS_KIND_COUNT) continue;
    weir_ps_server_drop(s, push->data);
    push->data = NULL;
    push->kind = WEIR_PS_KIND_COUNT; /* skipped */
  }
  c->active = c->parked = c->spare = false;
  c->received = s->marks[m->worker].seq;
  c->fencing = true;
  if (!s->applying || head(s)->worker != m->worker) send_fenced(s, m->worker);
  if (s->mode == WEIR_PS_BOUNDED) weir_ps_server_wake(s);
}

void weir_ps_async_clear(weir_ps_server *s) {
  for (uint32_t i = 0; i < s->queue_count; i++) {
    weir_ps_message *push = &s->queue[(s->queue_first + i) % s->queue_capacity];
    weir_ps_server_drop(s, push->data);
    push->data = NULL;
  }
  s->queue_count = 0;
  s->applying = false;
  s->late_mark.seq = 0;
}

/* ---- Clocks of bounded mode */

uint32_t weir_ps_bounded_behind(const weir_ps_server *s,
                                const weir_ps_message *pull) {
  uint64_t bound = s->options.config.staleness;
  uint32_t behind = UINT32_MAX;
  if (weir_ps_server_bug(s, WEIR_PS_FP_BUG_STALENESS)) bound++;
  for (uint32_t i = 0; i < s->workers; i++) {
    const weir_ps_client *c = &s->clients[i];
    if (!c->active || i == pull->worker || c->clock + bound >= pull->clock)
      continue;
    if (behind == UINT32_MAX || c->clock < s->clients[behind].clock) behind = i;
  }
  return behind;
}

void weir_ps_bounded_enter(weir_ps_server *s, weir_ps_message *pull) {
  weir_ps_client *c = &s->clients[pull->worker];
  if (pull->clock == WEIR_PS_NONE) {
    uint64_t low = UINT64_MAX, high = 0;
    for (uint32_t i = 0; i < s->workers; i++) {
      const weir_ps_client *other = &s->clients[i];
      if (i != pull->worker && other->active && other->clock < low)
        low = other->clock;
      if (other->clock > high) high = other->clock;
    }
    pull->clock = low != UINT64_MAX ? low : high;
  }
  c->active = true;
  c->clock = pull->clock;
}
