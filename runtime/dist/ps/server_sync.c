/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "runtime/dist/ps/server_internal.h"

/* One step after the other (sync).
 *
 * A step is the sum of N pushes in order of k, whoever computed them; the first
 * to arrive for a k counts. The sum is begun while pushes are missing: what has
 * come in order is added, the rest waits. The step is computed into the spare
 * buffers and counts when server 0 says so, which knows then that all servers
 * have it. Invariant: no server is more than one commit ahead of another, and
 * what READY promises stays in the spare buffers until the commit.
 *
 * The right to begin step t+1 is the version t+1, a level: a pull of it is
 * parked, nothing is handed out that could be lost. */

static uint32_t aggregate(const weir_ps_server *s) {
  return s->options.config.aggregate;
}

static bool all(const weir_ps_server *s, uint64_t set, uint32_t messages) {
  if (weir_ps_server_bug(s, WEIR_PS_FP_BUG_BARRIER))
    return messages >= s->servers;
  if (weir_ps_server_bug(s, WEIR_PS_FP_BUG_MAJORITY)) {
    for (messages = 0; set != 0; set &= set - 1) messages++;
    return messages > s->servers / 2;
  }
  return weir_ps_set_full(set, s->servers);
}

static void begin_round(weir_ps_server *s) {
  weir_ps_round *r = &s->round;
  uint32_t n = aggregate(s);
  for (uint32_t k = 0; k < n; k++) r->here[k] = r->taken[k] = false;
  r->phase = WEIR_PS_GATHERS;
  r->next = 0;
  r->adding = false;
  r->missing = n;
  r->norms = r->ready = 0;
  r->ready_messages = 0;
}

void weir_ps_sync_clear(weir_ps_server *s) {
  weir_ps_round *r = &s->round;
  for (uint32_t k = 0; k < aggregate(s); k++) {
    if (r->here[k]) weir_ps_server_drop(s, r->push[k].data);
    r->push[k].data = NULL;
    if (r->last != NULL) r->last[k] = 0;
  }
  if (r->taken != NULL) begin_round(s);
}

static void broadcast(weir_ps_server *s, weir_ps_kind kind, uint64_t step) {
  for (uint32_t i = 0; i < s->servers; i++) {
    weir_ps_message m = {.kind = kind, .step = step};
    if (i != s->index) weir_ps_server_send(s, weir_ps_server_of(i), &m);
  }
}

/* ---- Commit */

static void publish(weir_ps_server *s) {
  if (weir_ps_server_dies(s, WEIR_PS_FP_SERVER_BEFORE_PUBLISH)) return;
  s->version++;
  s->counts.applied++;
  begin_round(s);
  s->calls.publish(s->calls.self, s->version);
  if (s->saving != 0) { /* planted */
    uint64_t generation = s->saving;
    s->saving = 0;
    weir_ps_server_save(s, generation);
  }
  weir_ps_server_settle(s);
  weir_ps_server_wake(s);
  weir_ps_sync_spares(s);
}

/* At server 0: commits the step that all servers have computed. */
static void try_commit(weir_ps_server *s) {
  weir_ps_round *r = &s->round;
  if (s->dead || r->phase != WEIR_PS_IS_READY ||
      !all(s, r->ready, r->ready_messages))
    return;
  if (weir_ps_server_dies(s, WEIR_PS_FP_SERVER_BEFORE_COMMIT)) return;
  broadcast(s, WEIR_PS_COMMIT, s->version);
  if (weir_ps_server_dies(s, WEIR_PS_FP_SERVER_AFTER_COMMIT)) return;
  publish(s);
  weir_ps_keeper_committed(s);
}

static void note_ready(weir_ps_server *s, uint32_t from, uint64_t step) {
  weir_ps_round *r = &s->round;
  if (step < s->version) { /* it has not heard of the commit */
    weir_ps_message m = {.kind = WEIR_PS_COMMIT, .step = step};
    weir_ps_server_send(s, weir_ps_server_of(from), &m);
    return;
  }
  if (step != s->version) return;
  r->ready |= UINT64_C(1) << from;
  r->ready_messages++;
  try_commit(s);
}

static void report(weir_ps_server *s) {
  if (weir_ps_server_dies(s, WEIR_PS_FP_SERVER_BEFORE_READY)) return;
  if (s->index == 0) {
    note_ready(s, 0, s->version);
    return;
  }
  weir_ps_message m = {.kind = WEIR_PS_READY, .step = s->version};
  weir_ps_server_send(s, weir_ps_server_of(0), &m);
}

void weir_ps_server_finished(weir_ps_server *s, uint64_t ticket) {
  if (s->dead || ticket != s->ticket || s->round.phase != WEIR_PS_FINISHES)
    return;
  s->round.phase = WEIR_PS_IS_READY;
  report(s);
}

/* ---- Norms */

static void try_finish(weir_ps_server *s) {
  weir_ps_round *r = &s->round;
  if (r->phase != WEIR_PS_EXCHANGE || !weir_ps_set_full(r->norms, s->servers))
    return;
  r->phase = WEIR_PS_FINISHES;
  s->calls.finish(s->calls.self, s->ticket, s->version);
}

void weir_ps_server_normed(weir_ps_server *s, uint64_t ticket) {
  weir_ps_round *r = &s->round;
  if (s->dead || ticket != s->ticket || r->phase != WEIR_PS_NORMS) return;
  if (weir_ps_server_dies(s, WEIR_PS_FP_SERVER_NORM)) return;
  r->phase = WEIR_PS_EXCHANGE;
  r->norms |= UINT64_C(1) << s->index;
  broadcast(s, WEIR_PS_NORM, s->version);
  try_finish(s);
}

/* ---- The sum */

static void pump(weir_ps_server *s) {
  weir_ps_round *r = &s->round;
  if (s->dead || r->phase != WEIR_PS_GATHERS || r->adding) return;
  if (r->next < aggregate(s)) {
    if (!r->here[r->next]) return;
    r->adding = true;
    s->calls.add(s->calls.self, s->ticket, &r->push[r->next]);
    r->push[r->next].data = NULL; /* the host's */
    return;
  }
  if (s->options.config.norm && s->servers > 1) {
    r->phase = WEIR_PS_NORMS;
    s->calls.norm(s->calls.self, s->ticket, s->version);
    return;
  }
  if (weir_ps_server_dies(s, WEIR_PS_FP_SERVER_BEFORE_APPLY)) return;
  r->phase = WEIR_PS_FINISHES;
  s->calls.finish(s->calls.self, s->ticket, s->version);
}

void weir_ps_server_added(weir_ps_server *s, uint64_t ticket) {
  weir_ps_round *r = &s->round;
  if (s->dead || ticket != s->ticket || !r->adding) return;
  r->adding = false;
  r->next++;
  pump(s);
}

/* A push that has come before, planted: it is added all the same. */
static bool doubled(const weir_ps_server *s, const weir_ps_message *m) {
  const weir_ps_round *r = &s->round;
  return m->lease == 0 && m->k < r->next && !r->adding &&
         r->phase == WEIR_PS_GATHERS &&
         weir_ps_server_bug(s, WEIR_PS_FP_BUG_BACKUP_TWICE);
}

void weir_ps_sync_push(weir_ps_server *s, const weir_ps_message *m) {
  weir_ps_round *r = &s->round;
  if (weir_ps_server_dies(s, WEIR_PS_FP_SERVER_PUSH)) {
    weir_ps_server_drop(s, m->data);
    return;
  }
  if (m->lease != 0 && r->last[m->k] <= m->step) r->last[m->k] = m->step + 1;
  if (m->step == s->version && doubled(s, m)) {
    r->adding = true;
    r->next--;
    s->calls.add(s->calls.self, s->ticket, m);
    return;
  }
  if (m->step < s->version || r->here[m->k]) {
    *(m->step < s->version ? &s->counts.late : &s->counts.duplicates) += 1;
    weir_ps_server_drop(s, m->data);
    return;
  }
  r->here[m->k] = true;
  r->push[m->k] = *m;
  r->missing--;
  weir_ps_sync_spares(s);
  pump(s);
}

/* ---- Spares: a backup computes the run that is late */

/* The late micro-batch: its owner did not send the last step either, or few are
 * missing. Of several, the owner's that is furthest behind. */
static uint32_t late(const weir_ps_server *s) {
  const weir_ps_round *r = &s->round;
  uint32_t best = UINT32_MAX;
  bool few = r->missing <= s->options.config.backup;
  for (uint32_t k = 0; k < aggregate(s); k++) {
    if (r->here[k] || r->taken[k]) continue;
    bool behind = r->last[k] < s->version && r->last[k] > 0;
    if (!few && !behind) continue;
    if (best == UINT32_MAX || r->last[k] < r->last[best]) best = k;
  }
  return best;
}

/* A worker without a lease of its own offers its time; by now it may have one,
 * which a run of another's would hold up. */
static bool is_busy(const weir_ps_server *s, uint32_t worker) {
  const weir_ps_ledger *l = s->keeper.ledger;
  for (size_t i = 0; i < l->lease_count; i++)
    if (l->leases[i].worker == worker &&
        l->leases[i].range.first <= s->version + 1 &&
        l->leases[i].range.end > s->version)
      return true;
  return false;
}

/* All runs of the step at hand have an owner, so who has none is idle. */
static bool is_dealt(const weir_ps_server *s) {
  const weir_ps_ledger *l = s->keeper.ledger;
  if (s->version >= l->cursor) return false;
  for (size_t i = 0; i < l->pool_count; i++)
    if (l->pool[i].first <= s->version && l->pool[i].end > s->version)
      return false;
  return true;
}

void weir_ps_sync_spares(weir_ps_server *s) {
  if (s->index != 0 || s->mode != WEIR_PS_SYNC) return;
  if (!is_dealt(s)) return;
  for (uint32_t i = 0; i < s->workers && !s->dead; i++) {
    weir_ps_client *c = &s->clients[i];
    if (!c->spare || c->spare_step > s->version || is_busy(s, i)) continue;
    uint32_t k = late(s);
    if (k == UINT32_MAX) return;
    c->spare = false;
    s->round.taken[k] = true;
    weir_ps_message m = {.kind = WEIR_PS_TAKE,
                         .worker = i,
                         .incarnation = c->incarnation,
                         .step = s->version,
                         .k = k,
                         .run = s->version * aggregate(s) + k};
    weir_ps_server_send(s, (weir_ps_task){WEIR_PS_WORKER, i}, &m);
  }
}

/* ---- Messages of servers */

void weir_ps_sync_message(weir_ps_server *s, uint32_t from,
                          const weir_ps_message *m) {
  weir_ps_round *r = &s->round;
  if (m->kind == WEIR_PS_READY && s->index == 0) {
    note_ready(s, from, m->step);
  } else if (m->kind == WEIR_PS_COMMIT && from == 0) {
    if (m->step == s->version && r->phase == WEIR_PS_IS_READY) publish(s);
  } else if (m->kind == WEIR_PS_NORM && m->step == s->version) {
    r->norms |= UINT64_C(1) << from;
    try_finish(s);
  }
}

void weir_ps_sync_up(weir_ps_server *s, uint32_t server) {
  weir_ps_round *r = &s->round;
  weir_ps_message m = {.kind = WEIR_PS_NORM, .step = s->version};
  if ((r->norms >> s->index & 1) != 0)
    weir_ps_server_send(s, weir_ps_server_of(server), &m);
  m.kind = WEIR_PS_READY;
  if (server == 0 && r->phase == WEIR_PS_IS_READY)
    weir_ps_server_send(s, weir_ps_server_of(0), &m);
}
