/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/ps/ledger.h"

#include <assert.h>
#include <string.h>

#include "runtime/base/vec.h"

/* The ledger's ops.
 *
 * Invariant: a run below the cursor is in one range of the pool, in one lease,
 * or in none of both: then it is done. Ranges and leases of the ledger never
 * meet. An op that does not fit is refused before anything changes, and memory
 * that it may need is taken first, so that both copies of a ledger go the same
 * way. Cost: linear in the ranges of the pool and the leases, which are few:
 * holes are dealt before new ranges. */

static bool grow(weir_ps_ledger *l, size_t pool, size_t leases) {
  if (l->pool_capacity - l->pool_count < pool &&
      !weir_vec_grow(l->alloc, (void **)&l->pool, &l->pool_capacity,
                     l->pool_count, pool, sizeof *l->pool))
    return false;
  return l->lease_capacity - l->lease_count >= leases ||
         weir_vec_grow(l->alloc, (void **)&l->leases, &l->lease_capacity,
                       l->lease_count, leases, sizeof *l->leases);
}

weir_status weir_ps_ledger_create(const weir_allocator *alloc,
                                  const weir_ps_config *config, uint64_t limit,
                                  weir_ps_ledger **out_ledger,
                                  weir_error *err) {
  *out_ledger = NULL;
  weir_ps_ledger *l = weir_alloc_array(alloc, 1, sizeof *l);
  if (l == NULL) return weir_fail_memory(err, sizeof *l);
  l->alloc = alloc;
  l->config = *config;
  if (l->config.lease_steps == 0) l->config.lease_steps = 8;
  l->limit = limit;
  l->next_lease = l->next_incarnation = 1;
  l->members = weir_alloc_array(alloc, config->workers, sizeof *l->members);
  if (l->members == NULL || !grow(l, 16, 16)) {
    weir_ps_ledger_release(l);
    return weir_fail_memory(err, config->workers * sizeof *l->members);
  }
  *out_ledger = l;
  return WEIR_OK;
}

void weir_ps_ledger_release(weir_ps_ledger *l) {
  if (l == NULL) return;
  weir_free(l->alloc, l->members);
  weir_free(l->alloc, l->pool);
  weir_free(l->alloc, l->leases);
  weir_free(l->alloc, l);
}

static weir_status unfit(weir_error *err, const char *what) {
  return weir_fail(err, WEIR_W7091, NULL, "the ledger and %s do not fit", what);
}

static bool sound_range(const weir_ps_ledger *l, const weir_ps_range *r) {
  return r->first < r->end && r->k_first < r->k_end &&
         r->k_end <= l->config.aggregate;
}

uint64_t weir_ps_ledger_runs(const weir_ps_ledger *l) {
  uint64_t runs = l->earlier;
  if (l->config.mode == WEIR_PS_SYNC) return l->base * l->config.aggregate;
  for (uint32_t i = 0; i < l->config.workers; i++) runs += l->members[i].runs;
  return runs;
}

/* Async, bounded: whether each run below the cursor is in one place. */
static bool sound_account(const weir_ps_ledger *l) {
  uint64_t runs = weir_ps_ledger_runs(l);
  if (l->config.mode == WEIR_PS_SYNC) return true;
  for (size_t i = 0; i < l->pool_count; i++)
    runs += weir_ps_range_runs(&l->pool[i]);
  for (size_t i = 0; i < l->lease_count; i++)
    runs += weir_ps_range_runs(&l->leases[i].range);
  return runs == l->cursor;
}

static weir_status check_copy(const weir_ps_ledger *dst,
                              const weir_ps_ledger *src, weir_error *err) {
  if (src->config.workers != dst->config.workers ||
      src->config.aggregate != dst->config.aggregate ||
      src->config.mode != dst->config.mode)
    return unfit(err, "the job's configuration");
  for (uint32_t i = 0; i < src->config.workers; i++)
    if (src->members[i].state > WEIR_PS_FENCING ||
        src->members[i].incarnation >= src->next_incarnation)
      return unfit(err, "its members");
  for (size_t i = 0; i < src->pool_count; i++)
    if (!sound_range(src, &src->pool[i]) || src->pool[i].end > src->cursor)
      return unfit(err, "its ranges");
  for (size_t i = 0; i < src->lease_count; i++) {
    const weir_ps_lease *a = &src->leases[i];
    if (a->worker >= src->config.workers || a->id >= src->next_lease ||
        (i > 0 && a->id <= a[-1].id) || !sound_range(src, &a->range) ||
        a->range.end > src->cursor)
      return unfit(err, "its leases");
  }
  return sound_account(src) ? WEIR_OK : unfit(err, "its account of runs");
}

weir_status weir_ps_ledger_copy(weir_ps_ledger *dst, const weir_ps_ledger *src,
                                weir_error *err) {
  if (dst == src) return WEIR_OK;
  WEIR_TRY(check_copy(dst, src, err));
  weir_ps_ledger kept = *dst;
  kept.pool_count = kept.lease_count = 0;
  if (!grow(&kept, src->pool_count, src->lease_count)) {
    dst->pool = kept.pool; /* the one that was moved */
    dst->pool_capacity = kept.pool_capacity;
    return weir_fail_memory(err, src->lease_count * sizeof *src->leases);
  }
  *dst = *src;
  dst->alloc = kept.alloc;
  dst->members = kept.members;
  dst->pool = kept.pool;
  dst->leases = kept.leases;
  dst->pool_capacity = kept.pool_capacity;
  dst->lease_capacity = kept.lease_capacity;
  for (uint32_t i = 0; i < src->config.workers; i++)
    dst->members[i] = src->members[i];
  for (size_t i = 0; i < src->pool_count; i++) dst->pool[i] = src->pool[i];
  for (size_t i = 0; i < src->lease_count; i++) dst->leases[i] = src->leases[i];
  return WEIR_OK;
}

/* Puts |r| in the pool, where there is room; joins it with one that ends where
 * it begins, or begins where it ends. */
static void put(weir_ps_ledger *l, weir_ps_range r) {
  if (r.first < l->base) r.first = l->base;
  if (r.first >= r.end || r.k_first >= r.k_end) return;
  for (size_t i = 0; i < l->pool_count;) {
    const weir_ps_range *p = &l->pool[i];
    bool same = p->k_first == r.k_first && p->k_end == r.k_end;
    if (!same || (p->end != r.first && p->first != r.end)) {
      i++;
      continue;
    }
    if (p->end == r.first)
      r.first = p->first;
    else
      r.end = p->end;
    memmove(&l->pool[i], &l->pool[i + 1],
            (--l->pool_count - i) * sizeof *l->pool);
    i = 0;
  }
  size_t at = 0;
  while (at < l->pool_count &&
         (l->pool[at].first < r.first ||
          (l->pool[at].first == r.first && l->pool[at].k_first < r.k_first)))
    at++;
  assert(l->pool_count < l->pool_capacity);
  memmove(&l->pool[at + 1], &l->pool[at],
          (l->pool_count++ - at) * sizeof *l->pool);
  l->pool[at] = r;
}

static bool from_cursor(weir_ps_ledger *l, const weir_ps_range *r) {
  if (r->first != l->cursor || r->k_first != 0 || r->end > l->limit)
    return false;
  l->cursor = r->end;
  put(l, (weir_ps_range){r->first, r->end, r->k_end, l->config.aggregate});
  return true;
}

static bool from_pool(weir_ps_ledger *l, const weir_ps_range *r) {
  for (size_t i = 0; i < l->pool_count; i++) {
    weir_ps_range p = l->pool[i];
    if (p.first != r->first || p.k_first != r->k_first || r->end > p.end ||
        r->k_end > p.k_end)
      continue;
    memmove(&l->pool[i], &l->pool[i + 1],
            (--l->pool_count - i) * sizeof *l->pool);
    put(l, (weir_ps_range){p.first, r->end, r->k_end, p.k_end});
    put(l, (weir_ps_range){r->end, p.end, p.k_first, p.k_end});
    return true;
  }
  return false;
}

static weir_status op_lease(weir_ps_ledger *l, const weir_ps_op *op,
                            weir_error *err) {
  const weir_ps_member *m = &l->members[op->worker];
  if (l->over || m->state != WEIR_PS_MEMBER || !sound_range(l, &op->range))
    return unfit(err, "a lease");
  if (!grow(l, 2, 1)) return weir_fail_memory(err, sizeof *l->leases);
  if (!from_cursor(l, &op->range) && !from_pool(l, &op->range))
    return unfit(err, "a lease's range");
  l->leases[l->lease_count++] =
      (weir_ps_lease){l->next_lease++, op->worker, m->incarnation, op->range};
  return WEIR_OK;
}

/* Returns what |worker| has not done: |lease|, |run|: its mark. The rest is
 * its own. */
static void take_back(weir_ps_ledger *l, uint32_t worker, uint64_t lease,
                      uint64_t run) {
  size_t kept = 0;
  for (size_t i = 0; i < l->lease_count; i++) {
    weir_ps_lease a = l->leases[i];
    if (a.worker != worker) {
      l->leases[kept++] = a;
      continue;
    }
    if (l->config.mode != WEIR_PS_SYNC) {
      uint64_t done = a.range.first;
      if (a.id < lease) done = a.range.end;
      if (a.id == lease && run >= done)
        done = run < a.range.end ? run + 1 : a.range.end;
      l->members[worker].runs += done - a.range.first;
      a.range.first = done;
    }
    put(l, a.range);
  }
  l->lease_count = kept;
}

static void forget(weir_ps_ledger *l, uint32_t worker, uint64_t lease) {
  size_t kept = 0;
  for (size_t i = 0; i < l->lease_count; i++) {
    const weir_ps_lease a = l->leases[i];
    if (a.worker != worker || a.id > lease)
      l->leases[kept++] = a;
    else
      l->members[worker].runs += weir_ps_range_runs(&a.range);
  }
  l->lease_count = kept;
}

static void commit(weir_ps_ledger *l, uint64_t version) {
  size_t kept = 0;
  l->base = version;
  for (size_t i = 0; i < l->lease_count; i++)
    if (l->leases[i].range.end > version) l->leases[kept++] = l->leases[i];
  l->lease_count = kept;
  kept = 0;
  for (size_t i = 0; i < l->pool_count; i++) {
    weir_ps_range r = l->pool[i];
    if (r.first < version) r.first = version;
    if (r.first < r.end) l->pool[kept++] = r;
  }
  l->pool_count = kept;
}

static weir_status op_member(weir_ps_ledger *l, const weir_ps_op *op,
                             weir_error *err) {
  weir_ps_member *m = &l->members[op->worker];
  switch (op->kind) {
    case WEIR_PS_OP_JOIN:
      if (m->state != WEIR_PS_OUT || l->over) return unfit(err, "a new worker");
      m->state = WEIR_PS_MEMBER;
      m->incarnation = l->next_incarnation++;
      return WEIR_OK;
    case WEIR_PS_OP_DONE:
      forget(l, op->worker, op->lease);
      return WEIR_OK;
    case WEIR_PS_OP_FENCE:
      if (m->state != WEIR_PS_MEMBER) return unfit(err, "a lost worker");
      m->state = WEIR_PS_FENCING;
      return WEIR_OK;
    default: /* RESOLVE */
      if (m->state == WEIR_PS_OUT) return unfit(err, "a worker that is out");
      if (!grow(l, l->lease_count, 0))
        return weir_fail_memory(err, l->lease_count * sizeof *l->pool);
      take_back(l, op->worker, op->lease, op->run);
      l->partial += op->partial;
      m->state = WEIR_PS_OUT;
      return WEIR_OK;
  }
}

weir_status weir_ps_ledger_apply(weir_ps_ledger *l, const weir_ps_op *op,
                                 weir_error *err) {
  if (op->worker >= l->config.workers) return unfit(err, "a worker's number");
  switch (op->kind) {
    case WEIR_PS_OP_LEASE:
      return op_lease(l, op, err);
    case WEIR_PS_OP_JOIN:
    case WEIR_PS_OP_DONE:
    case WEIR_PS_OP_FENCE:
    case WEIR_PS_OP_RESOLVE:
      return op_member(l, op, err);
    case WEIR_PS_OP_COMMIT:
      if (op->limit < l->base || op->limit > l->cursor)
        return unfit(err, "a committed step");
      commit(l, op->limit);
      return WEIR_OK;
    case WEIR_PS_OP_LIMIT:
      if (op->limit < l->limit) return unfit(err, "a limit");
      l->limit = op->limit;
      return WEIR_OK;
    case WEIR_PS_OP_OVER:
      l->over = true;
      l->failed |= op->failed;
      return WEIR_OK;
  }
  return unfit(err, "an op");
}

weir_status weir_ps_ledger_settle(weir_ps_ledger *l, uint64_t version,
                                  weir_error *err) {
  if (!grow(l, l->lease_count, 0))
    return weir_fail_memory(err, l->lease_count * sizeof *l->pool);
  for (uint32_t i = 0; i < l->config.workers; i++) {
    take_back(l, i, 0, 0);
    l->members[i].state = WEIR_PS_OUT;
  }
  if (l->config.mode == WEIR_PS_SYNC) {
    l->pool_count = 0;
    l->cursor = l->base = version;
  }
  return WEIR_OK;
}

bool weir_ps_ledger_done(const weir_ps_ledger *l) {
  if (l->config.mode == WEIR_PS_SYNC) return l->base >= l->limit;
  return l->cursor >= l->limit && l->pool_count == 0 && l->lease_count == 0;
}
