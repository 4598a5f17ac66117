/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/account.h"

/* Rates are examples by time. That of all workers together is taken between the
 * first run that was told and the last, so that processes that start, and the
 * first run, which compiles, are no part of it; that of one worker alone is
 * taken from the time in which runs were computed, without data, pulls, pushes
 * and waits. */

weir_status weir_account_create(const weir_allocator *alloc, uint32_t workers,
                                weir_account *out, weir_error *err) {
  *out = (weir_account){.alloc = alloc, .count = workers};
  out->workers = weir_alloc_array(alloc, workers, sizeof *out->workers);
  if (out->workers != NULL) return WEIR_OK;
  out->count = 0;
  return weir_fail_memory(err, workers * sizeof *out->workers);
}

void weir_account_release(weir_account *a) {
  if (a->workers != NULL) weir_free(a->alloc, a->workers);
  a->workers = NULL;
  a->count = 0;
}

void weir_account_note(weir_account *a, uint32_t worker,
                       const weir_account_run *run, int64_t now_ns) {
  if (worker >= a->count) return;
  weir_account_worker *w = &a->workers[worker];
  if (a->rows == 0) {
    a->first_ns = now_ns;
    a->first_rows = run->rows;
  }
  a->last_ns = now_ns;
  a->rows += run->rows;
  w->rows += run->rows;
  w->runs++;
  w->busy_ns += run->busy_ns;
  if (run->compute_ns <= 0) return;
  w->compute_rows += run->rows;
  w->compute_ns += run->compute_ns;
}

void weir_account_stale(weir_account *a, uint64_t staleness) {
  uint32_t bucket = 0;
  for (uint64_t rest = staleness; rest > 0; rest >>= 1) bucket++;
  if (bucket >= WEIR_ACCOUNT_BUCKETS) bucket = WEIR_ACCOUNT_BUCKETS - 1;
  a->staleness[bucket]++;
  if (staleness > a->staleness_max) a->staleness_max = staleness;
}

static double rate(uint64_t rows, int64_t ns) {
  return ns > 0 ? (double)rows * 1e9 / (double)ns : 0;
}

void weir_account_fill(const weir_account *a, weir_train_worker *workers,
                       weir_train_account *out) {
  uint64_t runs = 0, compute_rows = 0;
  int64_t compute_ns = 0;
  for (uint32_t i = 0; i < a->count; i++) {
    runs += workers[i].runs;
    compute_rows += a->workers[i].compute_rows;
    compute_ns += a->workers[i].compute_ns;
  }
  for (uint32_t i = 0; i < a->count; i++) {
    const weir_account_worker *w = &a->workers[i];
    weir_train_worker *to = &workers[i];
    to->struct_size = sizeof *to;
    to->examples = w->rows;
    to->share = runs > 0 ? (double)to->runs / (double)runs : 0;
    to->rate = rate(w->rows, w->busy_ns);
    to->alone_rate = rate(w->compute_rows, w->compute_ns);
  }
  out->struct_size = sizeof *out;
  out->workers = workers;
  out->worker_count = a->count;
  out->rate = rate(a->rows - a->first_rows, a->last_ns - a->first_ns);
  out->alone_rate = rate(compute_rows, compute_ns);
  out->speedup = out->alone_rate > 0 ? out->rate / out->alone_rate : 0;
  out->staleness = a->staleness;
  out->staleness_count = WEIR_ACCOUNT_BUCKETS;
  out->staleness_most = a->staleness_max;
}
