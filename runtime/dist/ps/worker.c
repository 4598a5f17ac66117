/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/dist/ps/worker_internal.h"

/* The worker: joining, leases, leaving. worker.h has the contract. */

bool weir_ps_worker_dies(weir_ps_worker *w, weir_ps_failpoint fp) {
  if (!w->dead && weir_ps_hit(&w->options.failpoints, fp)) w->dead = true;
  return w->dead;
}

void weir_ps_worker_tell_chief(weir_ps_worker *w, weir_ps_message *m) {
  if (w->dead) return;
  m->epoch = w->chiefs_epoch;
  m->worker = w->index;
  m->incarnation = w->incarnation;
  m->life = w->life;
  w->calls.send(w->calls.self, (weir_ps_task){WEIR_PS_CHIEF, w->chief}, m);
}

void weir_ps_worker_tell_server(weir_ps_worker *w, uint32_t server,
                                weir_ps_message *m) {
  if (w->dead) return;
  m->worker = w->index;
  m->incarnation = w->incarnation;
  m->life = w->life;
  w->calls.send(w->calls.self, (weir_ps_task){WEIR_PS_SERVER, server}, m);
}

weir_status weir_ps_worker_create(const weir_allocator *alloc,
                                  const weir_ps_worker_options *options,
                                  const weir_ps_worker_calls *calls,
                                  weir_ps_worker **out_worker,
                                  weir_error *err) {
  *out_worker = NULL;
  const weir_ps_config *c = &options->config;
  WEIR_TRY(weir_ps_config_check(c, err));
  if (options->index >= c->workers)
    return weir_fail(err, WEIR_W7090, NULL, "worker %u of %u", options->index,
                     c->workers);
  weir_ps_worker *w = weir_alloc_array(alloc, 1, sizeof *w);
  if (w == NULL) return weir_fail_memory(err, sizeof *w);
  w->alloc = alloc;
  w->options = *options;
  if (c->window == 0) w->options.config.window = 1;
  w->calls = *calls;
  w->mode = c->mode;
  w->servers = c->servers;
  w->index = options->index;
  w->entering = true;
  w->sent_capacity = w->options.config.window;
  if (w->sent_capacity < c->aggregate) w->sent_capacity = c->aggregate;
  w->sent = weir_alloc_array(alloc, w->sent_capacity, sizeof *w->sent);
  w->sent_versions =
      weir_alloc_array(alloc, w->mode == WEIR_PS_SYNC ? 1 : w->sent_capacity,
                       w->servers * sizeof *w->sent_versions);
  w->versions = weir_alloc_array(alloc, w->servers, sizeof *w->versions);
  w->computed = weir_alloc_array(alloc, c->aggregate, sizeof *w->computed);
  if (w->sent == NULL || w->sent_versions == NULL || w->versions == NULL ||
      w->computed == NULL || !weir_vec_reserve(alloc, &w->leases, 16)) {
    weir_status status =
        weir_fail_memory(err, w->sent_capacity * sizeof *w->sent);
    weir_ps_worker_release(w);
    return status;
  }
  for (uint32_t i = 0; i < w->servers; i++) w->versions[i] = WEIR_PS_NONE;
  *out_worker = w;
  return WEIR_OK;
}

void weir_ps_worker_release(weir_ps_worker *w) {
  if (w == NULL) return;
  weir_vec_free(w->alloc, &w->leases);
  weir_free(w->alloc, w->sent);
  weir_free(w->alloc, w->sent_versions);
  weir_free(w->alloc, w->versions);
  weir_free(w->alloc, w->computed);
  weir_free(w->alloc, w);
}

/* ---- Joining: the answer to a chief's EPOCH, which it sends when it has been
 * granted one, and over each link that comes up then. */

static void join(weir_ps_worker *w, uint32_t chief) {
  if (weir_ps_worker_dies(w, WEIR_PS_FP_WORKER_JOIN)) return;
  weir_ps_message m = {.kind = WEIR_PS_JOIN,
                       .worker = w->index,
                       .incarnation = w->incarnation,
                       .life = w->life,
                       .epoch = w->chiefs_epoch,
                       .lease = w->last_lease,
                       .done = w->done_lease};
  w->calls.send(w->calls.self, (weir_ps_task){WEIR_PS_CHIEF, chief}, &m);
}

/* All that it had is void. */
static void reset(weir_ps_worker *w) {
  bool had = w->incarnation != 0;
  w->incarnation = 0;
  w->joined = w->want_sent = w->spare_sent = w->computing = w->pulled = false;
  w->resting = w->failed = false;
  w->entering = true;
  w->leases.count = w->sent_count = 0;
  w->last_lease = w->done_lease = 0;
  w->waits = w->seq = w->clock = w->step = w->version = 0;
  w->again = NULL;
  w->ticket++;
  for (uint32_t i = 0; i < w->servers; i++) w->versions[i] = WEIR_PS_NONE;
  memset(w->computed, 0, w->options.config.aggregate * sizeof *w->computed);
  if (!had) return;
  w->counts.resets++;
  w->calls.reset(w->calls.self);
}

static void end(weir_ps_worker *w, bool drained) {
  if (w->ended) return;
  w->ended = true;
  w->ticket++;
  w->calls.over(w->calls.self, drained);
}

static void tell_failed(weir_ps_worker *w) {
  weir_ps_message m = {.kind = WEIR_PS_FAILED, .run = w->failed_run};
  weir_ps_worker_tell_chief(w, &m);
}

static void on_welcome(weir_ps_worker *w, const weir_ps_message *m) {
  bool same = m->incarnation == w->incarnation && m->life == w->life;
  if (!same) {
    reset(w);
    w->incarnation = m->incarnation;
    w->life = m->life;
  }
  w->joined = true;
  w->want_sent = false;
  if (w->failed) tell_failed(w);
  if (w->leaving) weir_ps_worker_leave(w);
  weir_ps_worker_advance(w);
}

/* Begins anew. */
static void again(weir_ps_worker *w, uint32_t chief, bool wanted) {
  reset(w);
  if (w->draining || !wanted)
    end(w, true);
  else
    join(w, chief);
}

/* ---- Leases */

void weir_ps_worker_want(weir_ps_worker *w) {
  if (w->want_sent || w->draining) return;
  w->want_sent = true;
  weir_ps_message m = {.kind = WEIR_PS_WANT, .done = w->done_lease};
  weir_ps_worker_tell_chief(w, &m);
}

static void hold(weir_ps_worker *w, uint64_t id, weir_ps_range range) {
  if (!weir_vec_push(w->alloc, &w->leases, (weir_ps_held){id, range})) {
    /* It is dealt again, to one that has the memory. */
    reset(w);
    join(w, w->chief);
    return;
  }
  weir_ps_worker_advance(w);
}

static void on_lease(weir_ps_worker *w, const weir_ps_message *m) {
  if (!w->joined || m->incarnation != w->incarnation ||
      m->lease <= w->last_lease || m->range.first >= m->range.end ||
      m->range.k_first >= m->range.k_end ||
      m->range.k_end > w->options.config.aggregate)
    return;
  if (weir_ps_worker_dies(w, WEIR_PS_FP_WORKER_LEASE)) return;
  w->last_lease = m->lease;
  w->want_sent = false;
  if (w->leaving) return; /* given back with the rest */
  hold(w, m->lease, m->range);
}

/* ---- Leaving */

void weir_ps_worker_leave(weir_ps_worker *w) {
  if (weir_ps_worker_dies(w, WEIR_PS_FP_WORKER_LEAVE)) return;
  w->leaving = true;
  weir_ps_message m = {.kind = WEIR_PS_LEAVE, .done = w->done_lease};
  weir_ps_worker_tell_chief(w, &m);
}

void weir_ps_worker_drain(weir_ps_worker *w) {
  if (w->dead || w->draining || w->ended) return;
  w->draining = true;
  if (!w->joined)
    end(w, true);
  else
    weir_ps_worker_advance(w);
}

/* ---- Events */

static void on_chief(weir_ps_worker *w, uint32_t from,
                     const weir_ps_message *m) {
  if (m->epoch < w->chiefs_epoch) return;
  w->chiefs_epoch = m->epoch;
  w->chief = from;
  bool mine = w->incarnation != 0 && m->incarnation == w->incarnation;
  switch (m->kind) {
    case WEIR_PS_WELCOME:
      on_welcome(w, m);
      return;
    case WEIR_PS_LEASE:
      on_lease(w, m);
      return;
    case WEIR_PS_EPOCH:
      if (m->life == 0) return;
      if (m->life != w->life && w->incarnation != 0)
        again(w, from, true);
      else
        join(w, from);
      return;
    case WEIR_PS_GONE:
      if (mine) again(w, from, m->ok);
      return;
    case WEIR_PS_BYE:
      if (mine && w->leaving) end(w, true);
      return;
    case WEIR_PS_OVER:
      end(w, false);
      return;
    default:
      return;
  }
}

static void on_server(weir_ps_worker *w, uint32_t from,
                      const weir_ps_message *m) {
  if (m->life != w->life || !w->joined || from >= w->servers ||
      m->incarnation != w->incarnation)
    return;
  switch (m->kind) {
    case WEIR_PS_PULLED:
      weir_ps_worker_pulled(w, from, m);
      return;
    case WEIR_PS_PUSHED:
      weir_ps_worker_pushed(w, from, m);
      return;
    case WEIR_PS_MARK:
      weir_ps_worker_marked(w, from, m);
      return;
    case WEIR_PS_TAKE:
      if (!w->spare_sent || m->k >= w->options.config.aggregate) return;
      if (weir_ps_worker_dies(w, WEIR_PS_FP_WORKER_SPARE)) return;
      w->spare_sent = false;
      w->counts.spares++;
      hold(w, 0, (weir_ps_range){m->step, m->step + 1, m->k, m->k + 1});
      return;
    default:
      return;
  }
}

void weir_ps_worker_message(weir_ps_worker *w, weir_ps_task from,
                            const weir_ps_message *m) {
  if (w->dead || w->ended) return;
  if (from.role == WEIR_PS_CHIEF)
    on_chief(w, from.index, m);
  else if (from.role == WEIR_PS_SERVER)
    on_server(w, from.index, m);
}

void weir_ps_worker_up(weir_ps_worker *w, weir_ps_task peer) {
  if (w->dead || w->ended) return;
  if (peer.role == WEIR_PS_SERVER && peer.index < w->servers && w->joined)
    weir_ps_worker_resume(w, peer.index);
}

void weir_ps_worker_lost(weir_ps_worker *w, weir_ps_task peer) {
  if (peer.role == WEIR_PS_CHIEF && peer.index == w->chief)
    w->want_sent = false;
}

/* ---- Looks at it */

/* The first run of lease |l| behind run |run|; NONE: there is no such. */
static uint64_t run_behind(const weir_ps_worker *w, const weir_ps_range *l,
                           uint64_t run) {
  uint64_t n = w->options.config.aggregate, step = run / n;
  uint64_t k = run % n + 1;
  if (run == WEIR_PS_NONE || step < l->first) {
    step = l->first;
    k = l->k_first;
  } else if (k >= l->k_end) {
    step++;
    k = l->k_first;
  } else if (k < l->k_first) {
    k = l->k_first;
  }
  return step < l->end ? step * n + k : WEIR_PS_NONE;
}

/* Sync: by steps, over all leases, from the run at hand on. */
static uint32_t ahead_sync(const weir_ps_worker *w, uint64_t *out,
                           uint32_t most) {
  uint32_t n = w->options.config.aggregate, count = 0;
  uint64_t run = w->computing ? w->work.run : w->version * n - 1;
  while (count < most) {
    uint64_t next = WEIR_PS_NONE;
    for (size_t i = 0; i < w->leases.count; i++) {
      uint64_t r = run_behind(w, &w->leases.items[i].range, run);
      if (r < next) next = r;
    }
    if (next == WEIR_PS_NONE) break;
    run = next;
    if (run / n != w->step || !w->computed[run % n]) out[count++] = run;
  }
  return count;
}

/* Async, bounded: one lease after the other; what is computed is out of it. */
static uint32_t ahead_async(const weir_ps_worker *w, uint64_t *out,
                            uint32_t most) {
  uint32_t count = 0;
  for (size_t i = 0; i < w->leases.count; i++) {
    const weir_ps_range *l = &w->leases.items[i].range;
    for (uint64_t r = l->first; r < l->end && count < most; r++)
      out[count++] = r;
  }
  return count;
}

uint32_t weir_ps_worker_ahead(const weir_ps_worker *w, uint64_t *out,
                              uint32_t most) {
  if (w->ended || !w->joined || w->draining) return 0;
  return w->mode == WEIR_PS_SYNC ? ahead_sync(w, out, most)
                                 : ahead_async(w, out, most);
}

const weir_ps_worker_counts *weir_ps_worker_count(const weir_ps_worker *w) {
  return &w->counts;
}

weir_ps_worker_state weir_ps_worker_look(const weir_ps_worker *w, uint64_t *run,
                                         uint64_t *servers) {
  uint64_t missing = 0;
  if (run != NULL) *run = w->work.run;
  if (servers != NULL) *servers = w->waits;
  if (w->ended) return WEIR_PS_ENDED;
  if (w->leaving) return WEIR_PS_WAITS_BYE;
  if (!w->joined) return WEIR_PS_WAITS_JOIN;
  if (w->computing) return WEIR_PS_COMPUTES;
  for (uint32_t i = 0; i < w->sent_count && w->mode != WEIR_PS_SYNC; i++)
    missing |= weir_ps_worker_all(w) & ~w->sent[i].acked;
  /* An answer that is a push's too is waited for as such. */
  if (servers != NULL) *servers = w->waits & ~missing;
  if ((w->waits & ~missing) != 0) return WEIR_PS_WAITS_PULL;
  if (servers != NULL) *servers = missing;
  return w->sent_count > 0 && w->mode != WEIR_PS_SYNC ? WEIR_PS_WAITS_PUSH
                                                      : WEIR_PS_WAITS_LEASE;
}
