/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/pool_grow.h"

#include <string.h>

#include "runtime/exec/pool.h"

/* A pool begins with one thread less than it has slots, since callers work too.
 * That is too few in two cases:
 *
 * - A run is started and nobody waits for it. The pool gets the last thread
 *   then, and not before: a process that only ever waits for its runs, such as
 *   `weir run`, has no use for it, and one with a single slot has no thread.
 * - A thread sleeps in the middle of an instruction until a peer has sent. Its
 *   stack is in use, so no other task may run on it, or the one above could
 *   wait for the one below. Another thread and another worker for callers stand
 *   in; they stay and serve the next sleeper too.
 *
 * Invariant, under |grow_lock|: pool threads >= those to begin with + sleepers;
 * callers' workers >= slots + sleepers. Workers never move or go before the
 * pool does, so others look through them without a lock. */

static weir_status add_worker(weir_pool *pool, bool thread, weir_error *err) {
  int count = atomic_load(&pool->worker_count);
  if (count - pool->first_count == WEIR_POOL_EXTRA)
    return weir_fail(err, WEIR_W6003, NULL,
                     "%d threads sleep in nested programs until a peer sends, "
                     "no more are made",
                     pool->asleep);
  weir_worker *w = weir_alloc_aligned(pool->env->alloc, sizeof *w, 64);
  if (w == NULL) return weir_fail_memory(err, sizeof *w);
  memset(w, 0, sizeof *w);
  w->pool = pool;
  w->index = count;
  atomic_store(&w->taken, thread);
  pool->extra[count - pool->first_count] = w;
  atomic_store(&pool->worker_count, count + 1);
  weir_status s = thread ? weir_pool_start_thread(w, err) : WEIR_OK;
  if (thread && s == WEIR_OK) return WEIR_OK;
  pool->caller_count++; /* without a thread it serves a caller */
  atomic_store(&w->taken, false);
  return s;
}

/* Under the lock: makes the invariant hold for one sleeper more or less. */
static weir_status grow(weir_pool *pool, weir_error *err) {
  int threads = pool->threads - !pool->starts + pool->asleep;
  while (pool->thread_count < threads) WEIR_TRY(add_worker(pool, true, err));
  while (pool->caller_count < pool->threads + pool->asleep)
    WEIR_TRY(add_worker(pool, false, err));
  return WEIR_OK;
}

weir_status weir_pool_serve(weir_pool *pool, weir_error *err) {
  pthread_mutex_lock(&pool->grow_lock);
  bool before = pool->starts;
  pool->starts = true;
  weir_status s = before ? WEIR_OK : grow(pool, err);
  if (s != WEIR_OK) pool->starts = false;
  pthread_mutex_unlock(&pool->grow_lock);
  return s;
}

weir_status weir_worker_sleep(weir_worker *worker, weir_error *err) {
  if (worker == NULL) return WEIR_OK;
  weir_pool *pool = worker->pool;
  pthread_mutex_lock(&pool->grow_lock);
  pool->asleep++;
  weir_status s = grow(pool, err);
  if (s != WEIR_OK) pool->asleep--;
  pthread_mutex_unlock(&pool->grow_lock);
  if (s == WEIR_OK) weir_pool_give_slot(pool);
  return s;
}

void weir_worker_rise(weir_worker *worker) {
  if (worker == NULL) return;
  weir_pool *pool = worker->pool;
  weir_pool_take_slot(pool);
  pthread_mutex_lock(&pool->grow_lock);
  pool->asleep--;
  pthread_mutex_unlock(&pool->grow_lock);
}
