/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/dist/ps/coordinator_internal.h"

/* Workers that join, come back, leave, or are out. */

static void tell(weir_ps_coordinator *c, uint32_t worker, weir_ps_message *m) {
  if (!c->seats[worker].up) return;
  m->worker = worker;
  m->life = c->life;
  weir_ps_chief_send(c, (weir_ps_task){WEIR_PS_WORKER, worker}, m);
}

static void tell_lease(weir_ps_coordinator *c, const weir_ps_lease *a) {
  weir_ps_message m = {.kind = WEIR_PS_LEASE,
                       .incarnation = a->incarnation,
                       .lease = a->id,
                       .range = a->range};
  tell(c, a->worker, &m);
}

/* Leases that were written down while the worker could not hear of them. */
static void tell_leases(weir_ps_coordinator *c, uint32_t worker,
                        uint64_t above) {
  for (size_t i = 0; i < c->ledger->lease_count; i++) {
    const weir_ps_lease *a = &c->ledger->leases[i];
    if (a->worker == worker && a->id > above) tell_lease(c, a);
  }
}

static void welcome(weir_ps_coordinator *c, uint32_t worker) {
  weir_ps_seat *seat = &c->seats[worker];
  weir_ps_message m = {.kind = WEIR_PS_WELCOME,
                       .incarnation = c->ledger->members[worker].incarnation};
  seat->asks = false;
  seat->lost_ns = INT64_MAX;
  seat->progress_ns = c->now_ns;
  tell(c, worker, &m);
}

void weir_ps_chief_greet(weir_ps_coordinator *c, uint32_t worker) {
  const weir_ps_member *m = &c->ledger->members[worker];
  weir_ps_seat *seat = &c->seats[worker];
  if (m->state != WEIR_PS_MEMBER || seat->join_incarnation != m->incarnation ||
      seat->join_life != c->life || seat->evicts)
    return;
  if (seat->join_done > seat->done) seat->done = seat->join_done;
  welcome(c, worker);
  tell_leases(c, worker, seat->join_lease);
}

static void clear(weir_ps_seat *seat) {
  seat->wants = seat->leaves = seat->evicts = false;
  seat->done = seat->fenced = seat->progress_run = 0;
  seat->mark_lease = seat->mark_run = seat->mark_high = 0;
  seat->mark_low = UINT64_MAX;
}

void weir_ps_chief_seat_all(weir_ps_coordinator *c) {
  for (uint32_t i = 0; i < c->workers; i++) {
    weir_ps_seat *seat = &c->seats[i];
    const weir_ps_member *m = &c->ledger->members[i];
    /* Its knowledge may be of another life. Workers join again when they hear
     * of the epoch, servers give their marks again. */
    clear(seat);
    seat->asks = false;
    seat->progress_ns = seat->lost_ns = c->now_ns;
    seat->quota = 0;
    seat->awaited = m->state != WEIR_PS_MEMBER;
    if (m->state == WEIR_PS_OUT) continue;
    for (uint32_t s = 0; s < c->servers; s++) weir_ps_chief_fence(c, i, s);
  }
}

/* ---- Workers that are out */

void weir_ps_chief_fence(weir_ps_coordinator *c, uint32_t worker,
                         uint32_t server) {
  const weir_ps_member *m = &c->ledger->members[worker];
  bool known = (c->seats[worker].fenced >> server & 1) != 0;
  if (m->state != WEIR_PS_FENCING || known || (c->up >> server & 1) == 0)
    return;
  weir_ps_message fence = {
      .kind = WEIR_PS_FENCE, .worker = worker, .incarnation = m->incarnation};
  weir_ps_chief_send(c, (weir_ps_task){WEIR_PS_SERVER, server}, &fence);
}

void weir_ps_chief_fenced(weir_ps_coordinator *c, uint32_t server,
                          const weir_ps_message *m) {
  if (m->worker >= c->workers || m->epoch != c->epoch) return;
  weir_ps_seat *seat = &c->seats[m->worker];
  const weir_ps_member *member = &c->ledger->members[m->worker];
  if (member->state != WEIR_PS_FENCING || member->incarnation != m->incarnation)
    return;
  seat->fenced |= UINT64_C(1) << server;
  if (m->seq < seat->mark_low) seat->mark_low = m->seq;
  if (m->seq <= seat->mark_high) return;
  seat->mark_high = m->seq;
  seat->mark_lease = m->lease;
  seat->mark_run = m->run;
}

static void is_out(weir_ps_coordinator *c, const weir_ps_op *op,
                   uint64_t returned) {
  weir_ps_seat *seat = &c->seats[op->worker];
  bool drained = seat->leaves;
  weir_ps_message m = {
      .kind = drained ? WEIR_PS_BYE : WEIR_PS_GONE,
      .incarnation = c->ledger->members[op->worker].incarnation,
      .ok = !seat->evicts};
  c->account.returned += returned;
  c->account.partial += op->partial;
  c->account.lost += !drained && !seat->evicts;
  clear(seat);
  tell(c, op->worker, &m);
  c->calls.member(c->calls.self, op->worker, false, drained);
}

static uint32_t lease_count(const weir_ps_coordinator *c, uint32_t worker) {
  uint32_t count = 0;
  for (size_t k = 0; k < c->ledger->lease_count; k++)
    count += c->ledger->leases[k].worker == worker;
  return count;
}

void weir_ps_chief_act(weir_ps_coordinator *c, const weir_ps_op *op,
                       uint64_t returned) {
  weir_ps_seat *seat = &c->seats[op->worker];
  switch (op->kind) {
    case WEIR_PS_OP_JOIN:
      clear(seat);
      if (!seat->awaited) seat->quota = 0; /* from the next limit on */
      seat->awaited = false;
      c->account.joined++;
      welcome(c, op->worker);
      if (!seat->up) seat->lost_ns = c->now_ns;
      c->calls.member(c->calls.self, op->worker, true, false);
      return;
    case WEIR_PS_OP_LEASE:
      seat->wants = false;
      /* It may have waited for long, with nothing to make progress with. */
      if (lease_count(c, op->worker) == 1) seat->progress_ns = c->now_ns;
      seat->quota -= weir_ps_range_runs(&op->range) < seat->quota
                         ? weir_ps_range_runs(&op->range)
                         : seat->quota;
      tell_lease(c, &c->ledger->leases[c->ledger->lease_count - 1]);
      return;
    case WEIR_PS_OP_FENCE:
      if (weir_ps_chief_dies(c, WEIR_PS_FP_CHIEF_FENCE)) return;
      seat->fenced = seat->mark_high = 0;
      seat->mark_low = UINT64_MAX;
      for (uint32_t s = 0; s < c->servers; s++)
        weir_ps_chief_fence(c, op->worker, s);
      return;
    case WEIR_PS_OP_RESOLVE:
      if (weir_ps_chief_dies(c, WEIR_PS_FP_CHIEF_RESOLVE)) return;
      is_out(c, op, returned);
      return;
    default:
      return;
  }
}

/* ---- Messages */

static void on_join(weir_ps_coordinator *c, uint32_t worker,
                    const weir_ps_message *m) {
  weir_ps_seat *seat = &c->seats[worker];
  if (!seat->up || m->epoch != c->epoch) return;
  seat->asks = true;
  seat->join_incarnation = m->incarnation;
  seat->join_life = m->life;
  seat->join_lease = m->lease;
  seat->join_done = m->done;
}

static void count_staleness(weir_ps_account *a, uint64_t staleness) {
  uint32_t bucket = 0;
  for (uint64_t rest = staleness; rest > 0; rest >>= 1) bucket++;
  if (bucket >= WEIR_PS_BUCKETS) bucket = WEIR_PS_BUCKETS - 1;
  a->staleness[bucket]++;
  if (staleness > a->staleness_max) a->staleness_max = staleness;
}

static void on_progress(weir_ps_coordinator *c, uint32_t worker,
                        const weir_ps_message *m) {
  weir_ps_seat *seat = &c->seats[worker];
  if (m->done > seat->done) seat->done = m->done;
  if (m->run > seat->progress_run) seat->progress_run = m->run;
  seat->progress_ns = c->now_ns;
  seat->share++;
  c->account.runs++;
  if (c->mode != WEIR_PS_SYNC) count_staleness(&c->account, m->staleness);
}

void weir_ps_chief_worker(weir_ps_coordinator *c, uint32_t worker,
                          const weir_ps_message *m) {
  weir_ps_seat *seat = &c->seats[worker];
  if (m->kind == WEIR_PS_JOIN) {
    on_join(c, worker, m);
    return;
  }
  if (!c->granted || m->life != c->life ||
      m->incarnation != c->ledger->members[worker].incarnation)
    return;
  switch (m->kind) {
    case WEIR_PS_WANT:
      if (m->done > seat->done) seat->done = m->done;
      seat->wants = true;
      return;
    case WEIR_PS_PROGRESS:
      on_progress(c, worker, m);
      return;
    case WEIR_PS_LEAVE:
      seat->leaves = true;
      if (m->done > seat->done) seat->done = m->done;
      return;
    case WEIR_PS_FAILED:
      c->failed = true;
      c->failed_run = m->run;
      return;
    default:
      return;
  }
}
