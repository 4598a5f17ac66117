/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/account/chief_account.h"

#include <string.h>

#include "runtime/train/ps/chief_net.h"

/* Runs that count come from the ledger, which server 0 keeps: a chief that was
 * restarted knows them too. Beside them stands the count of each server: both
 * are of the whole job, through all restarts, and differ by the runs that some
 * servers have and others do not (`partial`), and by nothing else. Speeds are
 * of what this chief was told. In sync mode a run counts with its step, whoever
 * was first; those of a worker are then the ones that it told of. */

weir_status weir_chief_account_create(weir_chief *c, weir_error *err) {
  uint32_t workers = c->job->config.workers;
  const weir_allocator *alloc = c->loop->alloc;
  c->shares = weir_alloc_array(alloc, workers, sizeof *c->shares);
  c->updates =
      weir_alloc_array(alloc, c->job->config.servers, sizeof *c->updates);
  c->applied =
      weir_alloc_array(alloc, c->job->config.servers, sizeof *c->applied);
  if (c->shares == NULL || c->updates == NULL || c->applied == NULL)
    return weir_fail_memory(err, workers * sizeof *c->shares);
  return weir_account_create(alloc, workers, &c->account, err);
}

void weir_chief_account_release(weir_chief *c) {
  weir_account_release(&c->account);
  weir_free(c->loop->alloc, c->shares);
  weir_free(c->loop->alloc, c->updates);
  weir_free(c->loop->alloc, c->applied);
}

/* A number of a peer: not above what a run can have. */
static uint64_t whole(double x) {
  return x > 0 && x < 1e15 ? (uint64_t)x : 0;
}

void weir_chief_account_note(weir_chief *c, uint32_t worker,
                             const double *values) {
  const double *more = values + c->job->number_count;
  weir_account_run run = {
      .rows = whole(more[WEIR_REPORT_ROWS]),
      .compute_ns = (int64_t)whole(more[WEIR_REPORT_COMPUTE_NS]),
      .busy_ns = (int64_t)whole(more[WEIR_REPORT_BUSY_NS])};
  weir_account_note(&c->account, worker, &run, weir_loop_clock(c->loop));
}

void weir_chief_account_take(weir_chief *c) {
  const weir_ps_ledger *l = weir_ps_coordinator_ledger(c->machine);
  const weir_ps_account *a = weir_ps_coordinator_account(c->machine);
  bool sync = c->job->config.mode == WEIR_PS_SYNC;
  c->total = (weir_train_account){.returned = a->returned};
  memcpy(c->account.staleness, a->staleness, sizeof c->account.staleness);
  c->account.staleness_max = a->staleness_max;
  _Static_assert(sizeof a->staleness == sizeof c->account.staleness,
                 "other buckets");
  if (l == NULL) return;
  c->total.runs = weir_ps_ledger_runs(l);
  c->total.earlier = l->earlier;
  c->total.partial = l->partial;
  for (uint32_t i = 0; i < c->account.count; i++)
    c->shares[i] = (weir_train_worker){
        .runs = sync ? weir_ps_coordinator_share(c->machine, i)
                     : l->members[i].runs};
}

void weir_chief_account_tell(weir_chief *c) {
  weir_loop *loop = c->loop;
  if (loop->calls.account == NULL) return;
  weir_chief_tell(c, WEIR_CHIEF_ACCOUNT, 0);
  pthread_mutex_lock(&c->lock);
  weir_train_account *a = &c->total;
  weir_account_fill(&c->account, c->shares, a);
  a->updates_least = a->updates_most = c->updates[0];
  a->applied = c->applied;
  a->server_count = c->job->config.servers;
  for (uint32_t s = 0; s < c->job->config.servers; s++) {
    c->applied[s] = c->updates[s] * c->job->config.aggregate;
    if (c->updates[s] < a->updates_least) a->updates_least = c->updates[s];
    if (c->updates[s] > a->updates_most) a->updates_most = c->updates[s];
  }
  weir_train_account copy = *a;
  pthread_mutex_unlock(&c->lock);
  loop->calls.account(loop->calls.self, &copy);
}
