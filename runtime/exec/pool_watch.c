/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/pool_watch.h"

#include <assert.h>

#include "runtime/exec/pool.h"

/* A run that waits for a peer has no thread that could look at the clock, and
 * the library has no timer. So threads that have nothing to do wake up every
 * WEIR_WATCH_NS while there is such a run, and one of them looks. Without any,
 * they sleep without end.
 *
 * A look ends waiting calls, whose callbacks may end the run: so it is made
 * without the lock, and |hold| keeps the run's memory until then. Looked-at
 * watches go to the list's end; a look costs at most kSome of them. */

enum { kSome = 32 };

static void link_last(weir_pool *pool, weir_watch *w) {
  w->before = pool->last_watch;
  w->next = NULL;
  if (pool->last_watch != NULL)
    pool->last_watch->next = w;
  else
    pool->watches = w;
  pool->last_watch = w;
}

static void unlink_watch(weir_pool *pool, weir_watch *w) {
  if (w->before != NULL)
    w->before->next = w->next;
  else
    pool->watches = w->next;
  if (w->next != NULL)
    w->next->before = w->before;
  else
    pool->last_watch = w->before;
}

void weir_pool_watch(weir_pool *pool, weir_watch *watch) {
  pthread_mutex_lock(&pool->watch_lock);
  link_last(pool, watch);
  int before = atomic_fetch_add(&pool->watch_count, 1);
  pthread_mutex_unlock(&pool->watch_lock);
  /* Sleepers sleep with an end from now on: any of them may be busy later. */
  if (before == 0) weir_pool_notify(pool);
}

void weir_pool_unwatch(weir_pool *pool, weir_watch *watch) {
  pthread_mutex_lock(&pool->watch_lock);
  assert(atomic_load(&pool->watch_count) > 0);
  unlink_watch(pool, watch);
  atomic_fetch_sub(&pool->watch_count, 1);
  pthread_mutex_unlock(&pool->watch_lock);
}

void weir_pool_look(weir_pool *pool) {
  weir_watch *some[kSome];
  int count = 0;
  if (atomic_exchange(&pool->looking, true)) return;
  pthread_mutex_lock(&pool->watch_lock);
  int most = atomic_load(&pool->watch_count);
  weir_watch *w = pool->watches;
  for (int i = 0; i < most && count < kSome; i++) {
    weir_watch *next = w->next;
    if (w->hold(w)) some[count++] = w;
    unlink_watch(pool, w);
    link_last(pool, w);
    w = next;
  }
  pthread_mutex_unlock(&pool->watch_lock);
  for (int i = 0; i < count; i++) some[i]->look(some[i]);
  atomic_store(&pool->looking, false);
}
