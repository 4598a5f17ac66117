/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/ps/coordinator_internal.h"

/* The op that the chief writes down next.
 *
 * Idea: no queue of intentions. Each time an op is written, the state is looked
 * at again and the most urgent op is made; what is lost with a link or a chief
 * is found again by the next look. Cost: linear in the workers and leases. */

static bool is_member(const weir_ps_coordinator *c, uint32_t i) {
  return c->ledger->members[i].state == WEIR_PS_MEMBER;
}

/* When a worker that is away is out. */
static int64_t due_ns(const weir_ps_coordinator *c, uint32_t i) {
  const weir_ps_seat *seat = &c->seats[i];
  if (!is_member(c, i) || seat->lost_ns == INT64_MAX) return INT64_MAX;
  return seat->lost_ns + c->options.rejoin_ns;
}

static bool must_go(const weir_ps_coordinator *c, uint32_t i) {
  const weir_ps_seat *seat = &c->seats[i];
  if (!is_member(c, i)) return false;
  return seat->leaves || seat->evicts || due_ns(c, i) <= c->now_ns ||
         (seat->asks &&
          seat->join_incarnation != c->ledger->members[i].incarnation);
}

static bool has_lease(const weir_ps_coordinator *c, uint32_t i,
                      uint64_t up_to) {
  for (size_t k = 0; k < c->ledger->lease_count; k++)
    if (c->ledger->leases[k].worker == i && c->ledger->leases[k].id <= up_to)
      return true;
  return false;
}

/* ---- Workers */

static weir_ps_op resolve(const weir_ps_coordinator *c, uint32_t i) {
  const weir_ps_seat *seat = &c->seats[i];
  weir_ps_op op = {.kind = WEIR_PS_OP_RESOLVE, .worker = i};
  if (c->mode == WEIR_PS_SYNC) return op;
  op.lease = seat->mark_lease;
  op.run = seat->mark_run;
  if (seat->mark_high > seat->mark_low)
    op.partial = seat->mark_high - seat->mark_low;
  if (seat->leaves && weir_ps_chief_bug(c, WEIR_PS_FP_BUG_DRAIN))
    op.lease = UINT64_MAX;
  if (weir_ps_chief_bug(c, WEIR_PS_FP_BUG_DEALT_TWICE)) op.run = 0;
  return op;
}

static bool choose_worker(weir_ps_coordinator *c, uint32_t i, weir_ps_op *op) {
  const weir_ps_member *m = &c->ledger->members[i];
  const weir_ps_seat *seat = &c->seats[i];
  bool sync = c->mode == WEIR_PS_SYNC;
  if (m->state == WEIR_PS_FENCING) {
    if (!weir_ps_set_full(seat->fenced, c->servers)) return false;
    *op = resolve(c, i);
    return true;
  }
  if (sync && must_go(c, i)) {
    *op = resolve(c, i);
    return true;
  }
  if (must_go(c, i)) {
    *op = (weir_ps_op){.kind = WEIR_PS_OP_FENCE, .worker = i};
    return true;
  }
  if (!sync && seat->done != 0 && has_lease(c, i, seat->done)) {
    *op =
        (weir_ps_op){.kind = WEIR_PS_OP_DONE, .worker = i, .lease = seat->done};
    return true;
  }
  if (m->state == WEIR_PS_OUT && seat->asks) {
    *op = (weir_ps_op){.kind = WEIR_PS_OP_JOIN, .worker = i};
    return true;
  }
  return false;
}

/* ---- Leases */

/* Runs below the limit that nobody has. */
static uint64_t undealt(const weir_ps_coordinator *c) {
  const weir_ps_ledger *l = c->ledger;
  uint64_t runs = l->limit > l->cursor ? l->limit - l->cursor : 0;
  for (size_t i = 0; i < l->pool_count; i++)
    runs += weir_ps_range_runs(&l->pool[i]);
  return runs;
}

/* By load: the last ones are dealt in small pieces, or all would wait for the
 * slowest. As the guided schedule of Polychronopoulos and Kuck, IEEE Trans.
 * Computers 1987, four pieces of what is left to each. */
static uint64_t lease_runs(const weir_ps_coordinator *c) {
  uint64_t members = 0, most = c->ledger->config.lease_steps;
  for (uint32_t i = 0; i < c->workers; i++) members += is_member(c, i);
  if (c->mode == WEIR_PS_SYNC || members == 0 ||
      c->ledger->config.shares == WEIR_PS_EQUAL)
    return most;
  uint64_t part = undealt(c) / (4 * members);
  return part == 0 ? 1 : part < most ? part : most;
}

/* By load: whether the runs that are left are too few for |i|, which has some
 * yet: whoever is first without gets them. */
static bool leaves_rest(const weir_ps_coordinator *c, uint32_t i) {
  uint64_t members = 0;
  for (uint32_t k = 0; k < c->workers; k++) members += is_member(c, k);
  return undealt(c) <= 2 * members && has_lease(c, i, UINT64_MAX);
}

static weir_ps_range next_range(const weir_ps_coordinator *c) {
  const weir_ps_ledger *l = c->ledger;
  weir_ps_range r = {l->cursor, l->limit, 0, l->config.aggregate};
  if (l->pool_count > 0) r = l->pool[0];
  uint64_t most = lease_runs(c);
  if (r.end > r.first && r.end - r.first > most) r.end = r.first + most;
  return r;
}

/* Whether |i| has a share: it is in, or it may still come. */
static bool is_sharer(const weir_ps_coordinator *c, uint32_t i) {
  return is_member(c, i) ||
         (c->seats[i].awaited && c->now_ns - c->ran_ns < c->options.rejoin_ns);
}

/* Equal shares of what nobody has, when those of before do not come to it: the
 * limit is another one, or a worker is out. */
static void share_out(weir_ps_coordinator *c) {
  uint64_t runs = undealt(c), given = 0, sharers = 0;
  for (uint32_t i = 0; i < c->workers; i++) {
    if (!is_sharer(c, i)) c->seats[i].quota = 0;
    sharers += is_sharer(c, i);
    given += c->seats[i].quota;
  }
  if (given == runs || sharers == 0) return;
  uint64_t rest = runs % sharers;
  for (uint32_t k = 0, first = c->next_up; k < c->workers; k++) {
    uint32_t i = (first + k) % c->workers;
    if (!is_sharer(c, i)) continue;
    c->seats[i].quota = runs / sharers + (rest > 0);
    if (rest == 0) continue;
    c->next_up = (i + 1) % c->workers;
    rest--;
  }
}

static bool choose_async(weir_ps_coordinator *c, weir_ps_op *op) {
  weir_ps_range r = next_range(c);
  bool equal = c->ledger->config.shares == WEIR_PS_EQUAL;
  if (r.first >= r.end) return false;
  if (equal) share_out(c);
  for (uint32_t i = 0; i < c->workers; i++) {
    const weir_ps_seat *seat = &c->seats[i];
    if (!seat->wants || !seat->up || seat->leaves || !is_member(c, i) ||
        seat->lost_ns != INT64_MAX ||
        (equal ? seat->quota == 0 : leaves_rest(c, i)))
      continue;
    if (equal && r.end - r.first > seat->quota) r.end = r.first + seat->quota;
    *op = (weir_ps_op){.kind = WEIR_PS_OP_LEASE, .worker = i, .range = r};
    return true;
  }
  return false;
}

/* The runs of |i| in the steps of |r|. */
static uint64_t load(const weir_ps_coordinator *c, uint32_t i,
                     const weir_ps_range *r) {
  uint64_t runs = 0;
  for (size_t k = 0; k < c->ledger->lease_count; k++) {
    const weir_ps_lease *a = &c->ledger->leases[k];
    if (a->worker != i) continue;
    uint64_t first = a->range.first > r->first ? a->range.first : r->first;
    uint64_t end = a->range.end < r->end ? a->range.end : r->end;
    if (first < end)
      runs += (end - first) * (a->range.k_end - a->range.k_first);
  }
  return runs;
}

/* Sync: all of a step is dealt at once, or nobody could finish it; columns of
 * micro-batches, as many as there are workers, and the least to do first. */
static bool choose_sync(weir_ps_coordinator *c, weir_ps_op *op) {
  const weir_ps_ledger *l = c->ledger;
  uint32_t count = 0, best = UINT32_MAX;
  uint64_t least = UINT64_MAX;
  bool pooled = l->pool_count > 0;
  if (!pooled && l->cursor >= c->committed + 2) return false;
  weir_ps_range r = next_range(c);
  if (r.first >= r.end) return false;
  for (uint32_t i = 0; i < c->workers; i++) {
    if (!is_member(c, i) || !c->seats[i].up || c->seats[i].leaves ||
        must_go(c, i) || c->seats[i].lost_ns != INT64_MAX)
      continue;
    count++;
    uint64_t runs = load(c, i, &r);
    if (runs >= least) continue;
    least = runs;
    best = i;
  }
  if (count == 0) return false;
  uint32_t width = (l->config.aggregate + count - 1) / count;
  if (r.k_end - r.k_first > width) r.k_end = r.k_first + width;
  *op = (weir_ps_op){.kind = WEIR_PS_OP_LEASE, .worker = best, .range = r};
  return true;
}

bool weir_ps_chief_choose(weir_ps_coordinator *c, weir_ps_op *op) {
  const weir_ps_ledger *l = c->ledger;
  if (l->over) return false;
  if (c->failed || c->stop) {
    *op = (weir_ps_op){.kind = WEIR_PS_OP_OVER, .failed = c->failed};
    return true;
  }
  if (c->new_limit > l->limit) {
    *op = (weir_ps_op){.kind = WEIR_PS_OP_LIMIT, .limit = c->new_limit};
    return true;
  }
  uint64_t committed = c->committed < l->cursor ? c->committed : l->cursor;
  if (c->mode == WEIR_PS_SYNC && committed > l->base) {
    *op = (weir_ps_op){.kind = WEIR_PS_OP_COMMIT, .limit = committed};
    return true;
  }
  for (uint32_t i = 0; i < c->workers; i++)
    if (choose_worker(c, i, op)) return true;
  return c->mode == WEIR_PS_SYNC ? choose_sync(c, op) : choose_async(c, op);
}

/* ---- Slow and lost workers */

int64_t weir_ps_chief_deadline(const weir_ps_coordinator *c) {
  int64_t next = INT64_MAX;
  if (c->state != WEIR_PS_CHIEF_RUNS || c->pending) return next;
  int64_t all_ns = c->ran_ns + c->options.rejoin_ns;
  if (c->ledger->config.shares == WEIR_PS_EQUAL && all_ns > c->now_ns)
    next = all_ns;
  for (uint32_t i = 0; i < c->workers; i++) {
    int64_t due = due_ns(c, i);
    if (due < next) next = due;
    if (c->options.evict_ns == 0 || !is_member(c, i)) continue;
    int64_t slow = c->seats[i].progress_ns + c->options.evict_ns;
    if (slow > c->now_ns && slow < next) next = slow;
  }
  return next;
}

/* Async: whether |k| has done a run since |i| last did, or waits for one; not
 * one that has done none yet, which may be no faster. */
static bool is_faster(const weir_ps_coordinator *c, uint32_t k, uint32_t i) {
  const weir_ps_seat *seat = &c->seats[k];
  if (k == i || !is_member(c, k)) return false;
  if (seat->progress_ns > c->seats[i].progress_ns) return true;
  return seat->up && seat->share > 0 && !has_lease(c, k, UINT64_MAX);
}

/* Whether |i| keeps a run back that others wait for, or have long passed. */
static bool is_slow(const weir_ps_coordinator *c, uint32_t i) {
  const weir_ps_ledger *l = c->ledger;
  const weir_ps_seat *seat = &c->seats[i];
  if (c->now_ns - seat->progress_ns < c->options.evict_ns) return false;
  if (c->mode == WEIR_PS_SYNC) {
    if (c->now_ns - c->committed_ns < c->options.evict_ns) return false;
    for (size_t k = 0; k < l->lease_count; k++) {
      const weir_ps_lease *a = &l->leases[k];
      uint64_t last = c->committed * l->config.aggregate + a->range.k_end - 1;
      if (a->worker == i && a->range.first <= c->committed &&
          a->range.end > c->committed && seat->progress_run < last)
        return true;
    }
    return false;
  }
  if (!has_lease(c, i, UINT64_MAX)) return false;
  for (uint32_t k = 0; k < c->workers; k++)
    if (is_faster(c, k, i)) return true;
  return false;
}

void weir_ps_chief_evict(weir_ps_coordinator *c) {
  if (c->options.evict_ns == 0 || c->state != WEIR_PS_CHIEF_RUNS) return;
  for (uint32_t i = 0; i < c->workers; i++) {
    weir_ps_seat *seat = &c->seats[i];
    if (!is_member(c, i) || !seat->up || seat->evicts || !is_slow(c, i))
      continue;
    seat->evicts = true;
    c->account.evicted++;
  }
}
