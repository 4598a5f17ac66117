/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "runtime/dist/ps/worker_internal.h"

/* From a run to its push: what is pulled, computed and sent, and again.
 *
 * advance() looks at the state and begins the one thing that can be begun; each
 * event changes the state and calls it. Invariant: |sent| holds each push that
 * some server may lack, in the order of its numbers, and the host still has its
 * values; so whatever a link loses can be sent again. */

static void drop_lease(weir_ps_worker *w, size_t at) {
  memmove(&w->leases.items[at], &w->leases.items[at + 1],
          (--w->leases.count - at) * sizeof *w->leases.items);
}

/* ---- Pulls */

static void send_pull(weir_ps_worker *w, uint32_t server) {
  weir_ps_message m = {.kind = WEIR_PS_PULL,
                       .request = w->request,
                       .seq = w->seq,
                       .version = w->versions[server],
                       .step = w->pull_step,
                       .clock = w->entering ? WEIR_PS_NONE : w->clock};
  weir_ps_worker_tell_server(w, server, &m);
}

/* A pull of all servers, which somebody sends. */
static void new_pull(weir_ps_worker *w, uint64_t step) {
  w->request++;
  w->waits = weir_ps_worker_all(w);
  w->pulled = w->resting = false;
  w->pull_step = step;
}

static void begin_pull(weir_ps_worker *w, uint64_t step) {
  new_pull(w, step);
  if (w->mode != WEIR_PS_BOUNDED) w->entering = false;
  if (w->entering) w->clock = 0;
  for (uint32_t s = 0; s < w->servers; s++) send_pull(w, s);
}

/* Bounded: a worker that enters is first known to all servers, then pulls at
 * the largest of the clocks that they give it: nobody was let on by a server
 * that did not know it, to a clock at which its pushes must be seen. Sync: all
 * servers' values must be of one version. */
static bool pull_rest(weir_ps_worker *w) {
  uint64_t high = 0;
  for (uint32_t s = 0; s < w->servers; s++)
    if (w->versions[s] > high) high = w->versions[s];
  w->pull_step = high;
  for (uint32_t s = 0; s < w->servers; s++) {
    if (w->versions[s] == high) continue;
    w->waits |= UINT64_C(1) << s;
    send_pull(w, s);
  }
  return w->waits == 0;
}

static void forget_before(weir_ps_worker *w, uint64_t version) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < w->sent_count; i++) {
    if (w->sent[i].step >= version) {
      w->sent[kept++] = w->sent[i];
      continue;
    }
    w->counts.acknowledged++;
    w->calls.forget(w->calls.self, w->sent[i].run);
  }
  w->sent_count = kept;
}

void weir_ps_worker_pulled(weir_ps_worker *w, uint32_t server,
                           const weir_ps_message *m) {
  uint64_t bit = UINT64_C(1) << server;
  if (m->request != w->request || (w->waits & bit) == 0) return;
  if (weir_ps_worker_dies(w, WEIR_PS_FP_WORKER_PULLED)) return;
  w->waits &= ~bit;
  if (w->entering) {
    if (m->clock > w->clock) w->clock = m->clock;
    if (w->waits != 0) return;
    w->entering = false;
    begin_pull(w, 0);
    return;
  }
  w->versions[server] = m->version;
  if (w->mode == WEIR_PS_SYNC && m->version > w->pull_step) w->counts.skipped++;
  if (w->waits != 0) return;
  if (w->mode == WEIR_PS_SYNC) {
    if (!pull_rest(w)) return;
    w->version = w->versions[0];
    forget_before(w, w->version);
  }
  w->pulled = true;
  weir_ps_worker_advance(w);
}

/* ---- Pushes */

static uint64_t *versions_of(weir_ps_worker *w, const weir_ps_sent *p) {
  return &w->sent_versions[w->mode == WEIR_PS_SYNC
                               ? 0
                               : (size_t)(p->seq % w->sent_capacity) *
                                     w->servers];
}

static void send_push(weir_ps_worker *w, const weir_ps_sent *p, uint32_t server,
                      uint64_t request) {
  weir_ps_message m = {.kind = WEIR_PS_PUSH,
                       .seq = p->seq,
                       .lease = p->lease,
                       .run = p->run,
                       .step = p->step,
                       .k = p->k,
                       .clock = p->clock,
                       .lr_version = p->lr_version,
                       .request = request};
  m.version = w->mode == WEIR_PS_SYNC ? p->step : versions_of(w, p)[server];
  weir_ps_worker_tell_server(w, server, &m);
}

/* |request|: of the pull that goes with them; 0: none. A server that has the
 * push already is asked alone. */
static void send_pushes(weir_ps_worker *w, const weir_ps_sent *p,
                        uint64_t request) {
  for (uint32_t s = 0; s < w->servers; s++) {
    if ((p->acked >> s & 1) != 0) {
      if (request != 0) send_pull(w, s);
      continue;
    }
    if (s > 0 && weir_ps_worker_dies(w, WEIR_PS_FP_WORKER_MID_PUSH)) return;
    send_push(w, p, s, request);
  }
}

static void tell_progress(weir_ps_worker *w, uint64_t lease, uint64_t run,
                          uint64_t age) {
  weir_ps_message m = {.kind = WEIR_PS_PROGRESS,
                       .lease = lease,
                       .run = run,
                       .staleness = age,
                       .done = w->done_lease};
  weir_ps_worker_tell_chief(w, &m);
}

/* Forgets the first pushes, as many as are everywhere. */
static void settle(weir_ps_worker *w) {
  while (w->sent_count > 0 && w->sent[0].acked == weir_ps_worker_all(w)) {
    weir_ps_sent p = w->sent[0];
    memmove(&w->sent[0], &w->sent[1], --w->sent_count * sizeof *w->sent);
    if (p.last) w->done_lease = p.lease;
    w->counts.acknowledged++;
    w->calls.forget(w->calls.self, p.run);
    tell_progress(w, p.lease, p.run, p.age);
  }
}

static weir_ps_sent *find(weir_ps_worker *w, uint64_t seq) {
  for (uint32_t i = 0; i < w->sent_count; i++)
    if (w->sent[i].seq == seq) return &w->sent[i];
  return NULL;
}

/* The values for the next run, with the answer to a push. */
static void take_pull(weir_ps_worker *w, uint32_t server,
                      const weir_ps_message *m) {
  uint64_t bit = UINT64_C(1) << server;
  if (!m->newer || m->request != w->request || (w->waits & bit) == 0) return;
  w->waits &= ~bit;
  w->versions[server] = m->version;
  w->pulled = w->waits == 0;
}

static void acknowledge(weir_ps_sent *p, uint32_t server,
                        const weir_ps_message *m) {
  p->acked |= UINT64_C(1) << server;
  if (m->verdict == WEIR_PS_APPLIED && m->staleness > p->age)
    p->age = m->staleness;
}

void weir_ps_worker_pushed(weir_ps_worker *w, uint32_t server,
                           const weir_ps_message *m) {
  weir_ps_sent *p = find(w, m->seq);
  weir_ps_message ask = {.kind = WEIR_PS_ASK};
  if (w->mode == WEIR_PS_SYNC) return;
  if (weir_ps_worker_dies(w, WEIR_PS_FP_WORKER_PUSHED)) return;
  take_pull(w, server, m);
  if (p != NULL && m->verdict == WEIR_PS_AGAIN)
    weir_ps_worker_tell_server(w, server, &ask);
  else if (p != NULL && m->verdict == WEIR_PS_STALE)
    p->stale |= UINT64_C(1) << server;
  else if (p != NULL)
    acknowledge(p, server, m);
  settle(w);
  weir_ps_worker_advance(w);
}

void weir_ps_worker_marked(weir_ps_worker *w, uint32_t server,
                           const weir_ps_message *m) {
  uint64_t bit = UINT64_C(1) << server;
  if (w->mode == WEIR_PS_SYNC) return;
  for (uint32_t i = 0; i < w->sent_count; i++) {
    weir_ps_sent *p = &w->sent[i];
    if (p->seq <= m->seq) {
      p->acked |= bit;
      p->stale &= ~bit;
    } else if ((p->stale & bit) == 0 && p != w->again) {
      if (weir_ps_worker_dies(w, WEIR_PS_FP_WORKER_RESEND)) return;
      w->counts.resent++;
      send_push(w, p, server, 0); /* a pull that waits is sent again alone */
    }
  }
  settle(w);
  weir_ps_worker_advance(w);
}

void weir_ps_worker_resume(weir_ps_worker *w, uint32_t server) {
  weir_ps_message ask = {.kind = WEIR_PS_ASK};
  if (w->mode == WEIR_PS_SYNC) {
    for (uint32_t i = 0; i < w->sent_count; i++) {
      if (weir_ps_worker_dies(w, WEIR_PS_FP_WORKER_RESEND)) return;
      w->counts.resent++;
      send_push(w, &w->sent[i], server, 0);
    }
    if (server == 0) w->spare_sent = false;
  } else if (w->sent_count > 0) {
    weir_ps_worker_tell_server(w, server, &ask);
  }
  if ((w->waits >> server & 1) != 0) send_pull(w, server);
  if (w->resting) {
    weir_ps_message rest = {.kind = WEIR_PS_REST};
    weir_ps_worker_tell_server(w, server, &rest);
  }
  weir_ps_worker_advance(w);
}

/* ---- Computing */

static void compute(weir_ps_worker *w, uint64_t run, weir_ps_held of) {
  uint32_t n = w->options.config.aggregate;
  w->work = (weir_ps_work){.run = run,
                           .step = run / n,
                           .k = (uint32_t)(run % n),
                           .version = w->versions[0]};
  w->work_of = of;
  w->computing = true;
  w->calls.compute(w->calls.self, w->ticket, &w->work);
}

/* The push of the run that is computed; NULL: a new one. */
static weir_ps_sent *make_push(weir_ps_worker *w) {
  weir_ps_sent *p = w->again;
  if (p == NULL) {
    assert(w->sent_count < w->sent_capacity);
    p = &w->sent[w->sent_count++];
    *p = (weir_ps_sent){.seq = ++w->seq,
                        .lease = w->work_of.id,
                        .run = w->work.run,
                        .step = w->work.step,
                        .k = w->work.k,
                        .last = w->work.run + 1 == w->work_of.range.end};
  }
  p->clock = w->clock;
  p->lr_version = w->versions[0];
  p->stale = 0;
  if (w->mode != WEIR_PS_SYNC)
    memcpy(versions_of(w, p), w->versions, w->servers * sizeof *w->versions);
  return p;
}

/* Whether a push holds the pull for the next run. */
static bool goes_on(const weir_ps_worker *w) {
  return w->mode != WEIR_PS_SYNC && w->options.config.window <= 1 &&
         !w->draining && w->leases.count > 0;
}

void weir_ps_worker_computed(weir_ps_worker *w, uint64_t ticket, bool ok) {
  if (w->dead || w->ended || ticket != w->ticket || !w->computing) return;
  w->computing = false;
  w->counts.computed++;
  if (!ok) {
    weir_ps_message m = {.kind = WEIR_PS_FAILED, .run = w->work.run};
    w->failed = true;
    w->failed_run = w->work.run;
    weir_ps_worker_tell_chief(w, &m);
    return;
  }
  if (weir_ps_worker_dies(w, WEIR_PS_FP_WORKER_BEFORE_PUSH)) return;
  weir_ps_sent *p = make_push(w);
  bool fresh = w->again == NULL;
  w->again = NULL;
  w->counts.pushed++;
  bool pulls = goes_on(w);
  if (pulls) new_pull(w, 0);
  send_pushes(w, p, pulls ? w->request : 0);
  if (weir_ps_worker_dies(w, WEIR_PS_FP_WORKER_AFTER_PUSH)) return;
  if (fresh) w->clock++;
  if (w->mode == WEIR_PS_SYNC) {
    w->computed[w->work.k] = true;
    tell_progress(w, w->work_of.id, w->work.run, 0);
  } else {
    w->pulled = false;
  }
  weir_ps_worker_advance(w);
}

/* ---- Async, bounded */

static void rest(weir_ps_worker *w) {
  if (w->mode != WEIR_PS_BOUNDED || w->resting || w->sent_count > 0) return;
  w->resting = w->entering = true;
  w->waits = 0;
  for (uint32_t s = 0; s < w->servers; s++) {
    weir_ps_message m = {.kind = WEIR_PS_REST};
    weir_ps_worker_tell_server(w, s, &m);
  }
}

static weir_ps_sent *stale(weir_ps_worker *w) {
  for (uint32_t i = 0; i < w->sent_count; i++) {
    weir_ps_sent *p = &w->sent[i];
    if (p->stale != 0 && (p->stale | p->acked) == weir_ps_worker_all(w))
      return p;
  }
  return NULL;
}

static uint64_t runs_left(const weir_ps_worker *w) {
  uint64_t runs = 0;
  for (size_t i = 0; i < w->leases.count; i++)
    runs += w->leases.items[i].range.end - w->leases.items[i].range.first;
  return runs;
}

static void advance_async(weir_ps_worker *w) {
  weir_ps_sent *p = stale(w);
  if (p == NULL && w->draining) {
    if (w->sent_count == 0 && !w->leaving) weir_ps_worker_leave(w);
    return;
  }
  if (p == NULL && runs_left(w) < 2) weir_ps_worker_want(w);
  if (p == NULL && w->leases.count == 0) {
    rest(w);
    return;
  }
  if (w->waits != 0 || (p == NULL && w->sent_count >= w->options.config.window))
    return;
  if (!w->pulled) {
    begin_pull(w, 0);
    return;
  }
  if (p != NULL) {
    w->again = p;
    w->counts.again++;
    compute(w, p->run, (weir_ps_held){.id = p->lease});
    return;
  }
  weir_ps_held *l = &w->leases.items[0];
  weir_ps_held of = *l;
  if (++l->range.first == l->range.end) drop_lease(w, 0);
  compute(w, of.range.first, of);
}

/* ---- Sync */

/* The first step from the known version on of which |l| has a run that is not
 * computed; its end if there is none. */
static uint64_t first_step(const weir_ps_worker *w, const weir_ps_held *l,
                           uint32_t *out_k) {
  uint64_t step = l->range.first < w->version ? w->version : l->range.first;
  *out_k = l->range.k_first;
  if (step != w->step || step >= l->range.end) return step;
  while (*out_k < l->range.k_end && w->computed[*out_k]) ++*out_k;
  if (*out_k < l->range.k_end) return step;
  *out_k = l->range.k_first;
  return step + 1;
}

/* The run that comes first. false: there is none. */
static bool next_sync(weir_ps_worker *w, weir_ps_held *out_of,
                      uint64_t *out_step, uint32_t *out_k) {
  bool found = false;
  for (size_t i = 0; i < w->leases.count;) {
    const weir_ps_held *l = &w->leases.items[i];
    uint32_t k = 0;
    uint64_t step = first_step(w, l, &k);
    if (step >= l->range.end) {
      drop_lease(w, i);
      continue;
    }
    if (!found || step < *out_step || (step == *out_step && k < *out_k)) {
      found = true;
      *out_step = step;
      *out_k = k;
      *out_of = *l;
    }
    i++;
  }
  return found;
}

static void offer(weir_ps_worker *w) {
  if (w->options.config.backup == 0 || w->spare_sent) return;
  w->spare_sent = true;
  /* A later step than that of the last run that it computed. */
  uint64_t step = w->step < w->version ? w->version : w->step;
  for (uint32_t i = 0; i < w->sent_count; i++)
    if (w->sent[i].step >= step) step = w->sent[i].step + 1;
  weir_ps_message m = {.kind = WEIR_PS_SPARE, .step = step};
  weir_ps_worker_tell_server(w, 0, &m);
  /* Its values are here when the run is. */
  if (w->waits == 0 && (!w->pulled || w->version < step)) begin_pull(w, step);
}

/* It has work of its own now: a run of another's would hold that up. A TAKE
 * that crosses this is passed over; the run's owner computes it still. */
static void withdraw(weir_ps_worker *w) {
  if (!w->spare_sent) return;
  w->spare_sent = false;
  weir_ps_message m = {.kind = WEIR_PS_SPARE, .step = WEIR_PS_NONE};
  weir_ps_worker_tell_server(w, 0, &m);
}

static void advance_sync(weir_ps_worker *w) {
  weir_ps_held of = {0};
  uint64_t step = 0;
  uint32_t k = 0;
  if (w->draining) {
    if (!w->leaving) weir_ps_worker_leave(w);
    return;
  }
  if (!next_sync(w, &of, &step, &k)) {
    offer(w);
    return;
  }
  if (of.id != 0) withdraw(w);
  bool here = w->pulled && w->version == step;
  if (!here) {
    if (w->waits == 0 || w->pull_step != step) {
      /* Waiting for a later step while an earlier one has come to do, too. */
      if (w->waits == 0 || step < w->pull_step) begin_pull(w, step);
    }
    return;
  }
  if (w->step != step) {
    w->step = step;
    memset(w->computed, 0, w->options.config.aggregate * sizeof *w->computed);
  }
  compute(w, step * w->options.config.aggregate + k, of);
}

void weir_ps_worker_advance(weir_ps_worker *w) {
  if (w->dead || w->ended || !w->joined || w->failed || w->computing) return;
  if (w->mode == WEIR_PS_SYNC)
    advance_sync(w);
  else
    advance_async(w);
}
