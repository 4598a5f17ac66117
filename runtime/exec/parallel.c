/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/parallel.h"

#include <assert.h>

#include "runtime/exec/futex.h"
#include "runtime/exec/pool.h"
#include "runtime/exec/worker.h"

/* Loops that several workers share: the owner puts a job up, idle workers find
 * it and help. Blocks are dealt into shares, one for each thread, each with a
 * counter in a cache line of its own: a thread empties its own share first and
 * then takes from the others, so uneven blocks even out. A block costs one
 * atomic addition.
 *
 * Invariant: |fn| and |arg|, which lie on the owner's stack, are used only by
 * threads that are counted in |helpers|. A helper counts itself in and then
 * looks at |active|; the owner clears |active| and then waits for |helpers| to
 * become 0. All four are sequentially consistent, so either the helper sees
 * that the loop is over or the owner sees the helper. */

static const unsigned kOwnerSleeps = 1u << 31;
enum { kSpins = 4000 };

void weir_serial_for(void *self, int64_t blocks, weir_block_fn fn, void *arg) {
  (void)self;
  for (int64_t b = 0; b < blocks; b++) fn(arg, b, 0);
}

/* Takes blocks, share |first| before the others, until there are none or a
 * caller waits for a slot. A counter may pass its end, by one for each thread
 * that looks. */
static void work_blocks(weir_job *job, int first, int number,
                        const atomic_int *waiting) {
  for (int i = 0; i < job->share_count; i++) {
    weir_job_share *share = &job->shares[(first + i) % job->share_count];
    for (;;) {
      int64_t b =
          atomic_fetch_add_explicit(&share->next, 1, memory_order_relaxed);
      if (b >= share->end) break;
      job->fn(job->arg, b, number);
      if (waiting != NULL &&
          atomic_load_explicit(waiting, memory_order_relaxed) > 0)
        return;
    }
  }
}

static bool has_blocks(weir_job *job) {
  if (!atomic_load_explicit(&job->active, memory_order_acquire)) return false;
  for (int i = 0; i < job->share_count; i++)
    if (atomic_load_explicit(&job->shares[i].next, memory_order_relaxed) <
        job->shares[i].end)
      return true;
  return false;
}

/* Cuts the blocks into shares, one for each thread. */
static void deal(weir_job *job, int64_t blocks, int threads) {
  int64_t count = threads < WEIR_JOB_SHARES ? threads : WEIR_JOB_SHARES;
  if (count > blocks) count = blocks;
  job->share_count = (int)count;
  for (int64_t i = 0, at = 0; i < count; i++) {
    atomic_store_explicit(&job->shares[i].next, at, memory_order_relaxed);
    at += (blocks - at) / (count - i);
    job->shares[i].end = at;
  }
  assert(job->shares[count - 1].end == blocks);
}

static bool help_job(weir_worker *worker, weir_job *job) {
  weir_pool *pool = worker->pool;
  if (!atomic_load_explicit(&job->active, memory_order_relaxed)) return false;
  atomic_fetch_add(&job->helpers, 1);
  bool helped = false;
  if (atomic_load(&job->active) && has_blocks(job)) {
    int number = atomic_fetch_add(&job->joined, 1);
    /* A helper that leaves for a waiting caller and comes back gets a new
     * number; the kernel has scratch for |most| of them. */
    if (number < job->most) {
      work_blocks(job, worker->index, number, &pool->waiting);
      helped = true;
    }
  }
  unsigned before = atomic_fetch_sub(&job->helpers, 1);
  if (before == (kOwnerSleeps | 1u)) weir_futex_wake(&job->helpers, 1);
  return helped;
}

bool weir_worker_help(weir_worker *worker) {
  weir_pool *pool = worker->pool;
  int count = atomic_load(&pool->worker_count);
  for (int i = 1; i < count; i++) {
    int at = worker->index + i;
    if (at >= count) at -= count;
    weir_worker *other = weir_pool_worker(pool, at);
    for (int d = 0; d < WEIR_JOB_DEPTH; d++)
      if (help_job(worker, &other->jobs[d])) return true;
  }
  return false;
}

/* Waits until every helper has counted itself out. The high bit is set in the
 * same word that helpers count down, so that the last one cannot miss it. */
static void wait_helpers(weir_job *job) {
  for (int i = 0; i < kSpins; i++) {
    if (atomic_load(&job->helpers) == 0) return;
    weir_cpu_relax();
  }
  unsigned seen = atomic_fetch_or(&job->helpers, kOwnerSleeps) | kOwnerSleeps;
  while ((seen & ~kOwnerSleeps) != 0) {
    weir_futex_wait(&job->helpers, seen, -1);
    seen = atomic_load(&job->helpers);
  }
  atomic_fetch_and(&job->helpers, ~kOwnerSleeps);
}

void weir_worker_share(weir_worker *worker, int most, int64_t blocks,
                       weir_block_fn fn, void *arg) {
  weir_pool *pool = worker->pool;
  if (most > pool->threads) most = pool->threads;
  if (blocks <= 1 || most <= 1 || worker->job_depth == WEIR_JOB_DEPTH) {
    weir_serial_for(NULL, blocks, fn, arg);
    return;
  }
  weir_job *job = &worker->jobs[worker->job_depth++];
  job->fn = fn;
  job->arg = arg;
  job->most = most;
  deal(job, blocks, most);
  atomic_store_explicit(&job->joined, 1, memory_order_relaxed);
  atomic_store(&job->active, true);
  int64_t helpers = blocks - 1;
  if (helpers > most - 1) helpers = most - 1;
  weir_pool_wake(pool, (int)helpers);
  work_blocks(job, worker->index, 0, NULL);
  atomic_store(&job->active, false);
  wait_helpers(job);
  worker->job_depth--;
}
