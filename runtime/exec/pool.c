/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/pool.h"

#include <assert.h>
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/exec/futex.h"
#include "runtime/exec/parallel.h"
#include "runtime/exec/pool_grow.h"
#include "runtime/exec/pool_watch.h"
#include "runtime/exec/worker.h"

/* Slots: at most |threads| threads run at once, callers' and the pool's own. A
 * caller works in its own thread and takes a slot for it; threads of the pool
 * stand back while callers wait. So many sessions on one pool never use more
 * cores than one. A caller that finds nothing to do gives its slot back before
 * it waits: the work that it waits for may be another caller's. For the same
 * reason it takes no slot to find out that there is still nothing.
 *
 * Work is found in the own deque, newest first, whose data is still in the
 * cache; then the other deques are robbed, oldest first, farthest from their
 * owners' work; then the overflow list, which has a lock; then shared loops.
 *
 * No wake-up is lost: a thread reads |epoch|, then looks for work, then sleeps
 * on the epoch that it read; new work is made visible first and counts the
 * epoch up after that. Either the look finds the work or the sleep returns at
 * once. */

enum { kMaxThreads = 256, kDefaultSpinNs = 50000, kBusySpins = 4 };

const weir_openmp *weir_pool_openmp(const weir_pool *pool) {
  return &pool->openmp;
}

int weir_pool_threads(const weir_pool *pool) {
  return pool->threads;
}

static int64_t now_ns(const weir_pool *pool) {
  return pool->env->clock->now_ns(pool->env->clock->self);
}

/* A sleeper counts itself in |sleepers| before it sleeps on the epoch. If it is
 * not counted yet here, the epoch has changed before it sleeps, and the system
 * call returns at once: so a wake-up without sleepers can be left out. */
void weir_pool_wake(weir_pool *pool, int count) {
  atomic_fetch_add(&pool->epoch, 1);
  if (atomic_load(&pool->sleepers) > 0) weir_futex_wake(&pool->epoch, count);
}

void weir_pool_notify(weir_pool *pool) {
  weir_pool_wake(pool, INT_MAX);
}

/* ---- Running slots */

static bool take_slot(weir_pool *pool) {
  int running = atomic_load(&pool->running);
  while (running < pool->threads)
    if (atomic_compare_exchange_weak(&pool->running, &running, running + 1))
      return true;
  return false;
}

/* Wakes all of them, of whom those without luck set |starved| again: the one
 * that gets the slot may sleep in its task until another's is done. */
static void wake_starved(weir_pool *pool) {
  if (atomic_load(&pool->starved) && atomic_exchange(&pool->starved, false))
    weir_pool_notify(pool);
}

void weir_pool_give_slot(weir_pool *pool) {
  assert(atomic_load(&pool->running) > 0);
  atomic_fetch_sub(&pool->running, 1);
  if (atomic_load(&pool->waiting) > 0) {
    atomic_fetch_add(&pool->slot_freed, 1);
    weir_futex_wake(&pool->slot_freed, 1);
  } else {
    wake_starved(pool);
  }
}

/* For a pool thread: callers go first. */
static bool take_worker_slot(weir_pool *pool) {
  if (atomic_load(&pool->waiting) == 0 && take_slot(pool)) return true;
  atomic_store(&pool->starved, true);
  /* The last slot may have been given back before |starved| was seen. */
  return atomic_load(&pool->waiting) == 0 && take_slot(pool);
}

void weir_pool_take_slot(weir_pool *pool) {
  if (take_slot(pool)) return;
  atomic_fetch_add(&pool->waiting, 1);
  for (;;) {
    unsigned seen = atomic_load(&pool->slot_freed);
    if (take_slot(pool)) break;
    weir_futex_wait(&pool->slot_freed, seen, -1);
  }
  /* Another slot that came back meanwhile was not offered to pool threads. */
  if (atomic_fetch_sub(&pool->waiting, 1) == 1) wake_starved(pool);
}

weir_worker *weir_pool_enter(weir_pool *pool) {
  weir_pool_take_slot(pool);
  /* At most |threads| callers hold slots, and for each that sleeps in the
   * middle of an instruction another worker was made: so one is free. */
  for (int i = pool->threads - 1;; i++) {
    if (i >= atomic_load(&pool->worker_count)) i = pool->threads - 1;
    weir_worker *worker = weir_pool_worker(pool, i);
    if (!atomic_load(&worker->taken) && !atomic_exchange(&worker->taken, true))
      return worker;
  }
}

void weir_pool_leave(weir_worker *worker) {
  weir_pool *pool = worker->pool;
  assert(atomic_load(&worker->taken) && worker->index >= pool->threads - 1);
  atomic_store(&worker->taken, false);
  weir_pool_give_slot(pool);
}

/* ---- Tasks */

static void push_overflow(weir_pool *pool, weir_task *task) {
  assert(task != NULL && task->run != NULL);
  pthread_mutex_lock(&pool->overflow_lock);
  task->next = pool->overflow;
  pool->overflow = task;
  atomic_fetch_add(&pool->overflow_count, 1);
  pthread_mutex_unlock(&pool->overflow_lock);
}

static weir_task *take_overflow(weir_pool *pool) {
  if (atomic_load(&pool->overflow_count) == 0) return NULL;
  pthread_mutex_lock(&pool->overflow_lock);
  weir_task *task = pool->overflow;
  if (task != NULL) {
    pool->overflow = task->next;
    atomic_fetch_sub(&pool->overflow_count, 1);
  }
  pthread_mutex_unlock(&pool->overflow_lock);
  return task;
}

void weir_pool_submit(weir_pool *pool, weir_task *task) {
  push_overflow(pool, task);
  weir_pool_wake(pool, 1);
}

void weir_worker_push(weir_worker *worker, weir_task *task) {
  if (!weir_deque_push(&worker->deque, task)) push_overflow(worker->pool, task);
  weir_pool_wake(worker->pool, 1);
}

static weir_task *find_task(weir_worker *worker) {
  weir_pool *pool = worker->pool;
  weir_task *task = weir_deque_take(&worker->deque);
  int count = atomic_load(&pool->worker_count);
  for (int i = 1; task == NULL && i < count; i++) {
    int at = worker->index + i;
    if (at >= count) at -= count;
    task = weir_deque_steal(&weir_pool_worker(pool, at)->deque);
  }
  return task != NULL ? task : take_overflow(pool);
}

/* One task and those it hands on, or a share of a loop. */
static bool do_some(weir_worker *worker) {
  weir_task *task = find_task(worker);
  if (task == NULL) return weir_worker_help(worker);
  while (task != NULL) task = task->run(task, worker);
  return true;
}

/* Waits until the epoch is no longer |seen|: spins, then sleeps. It spins for
 * longer while others run: a step goes on after an instruction that one thread
 * computes, and a thread that sleeps comes late to the next loop. */
static void idle(weir_pool *pool, unsigned seen) {
  int64_t began = pool->spin_ns > 0 ? now_ns(pool) : 0;
  while (pool->spin_ns > 0) {
    for (int i = 0; i < 64; i++) {
      if (atomic_load_explicit(&pool->epoch, memory_order_acquire) != seen)
        return;
      weir_cpu_relax();
    }
    int64_t spun = now_ns(pool) - began;
    if (spun >= kBusySpins * pool->spin_ns) break;
    if (spun >= pool->spin_ns && atomic_load(&pool->running) == 0) break;
  }
  bool watch = atomic_load(&pool->watch_count) > 0;
  atomic_fetch_add(&pool->sleepers, 1);
  weir_futex_wait(&pool->epoch, seen, watch ? WEIR_WATCH_NS : -1);
  atomic_fetch_sub(&pool->sleepers, 1);
  if (watch) weir_pool_look(pool);
}

static bool anything_to_do(weir_pool *pool) {
  if (atomic_load(&pool->overflow_count) > 0) return true;
  int count = atomic_load(&pool->worker_count);
  for (int i = 0; i < count; i++) {
    weir_worker *w = weir_pool_worker(pool, i);
    if (atomic_load(&w->deque.top) < atomic_load(&w->deque.bottom)) return true;
    for (int d = 0; d < WEIR_JOB_DEPTH; d++)
      if (atomic_load(&w->jobs[d].active)) return true;
  }
  return false;
}

void weir_worker_finish(weir_worker *worker, const atomic_int *remaining) {
  weir_pool *pool = worker->pool;
  while (atomic_load(remaining) > 0) {
    unsigned seen = atomic_load(&pool->epoch);
    if (do_some(worker)) continue;
    /* Nothing: so the deque is empty too, and another caller may have it. */
    weir_pool_leave(worker);
    worker = NULL;
    do {
      if (atomic_load(remaining) > 0) idle(pool, seen);
      seen = atomic_load(&pool->epoch);
      if (atomic_load(remaining) == 0) return;
    } while (!anything_to_do(pool));
    worker = weir_pool_enter(pool);
  }
  weir_pool_leave(worker);
}

/* ---- Threads */

static void *thread_main(void *self) {
  weir_worker *worker = self;
  weir_pool *pool = worker->pool;
  bool single = false; /* not before there is work: OpenMP may exit for want of
                          memory, and most threads of many never work */
  if (pool->thread_start != NULL) pool->thread_start(pool->thread_start_self);
  while (!atomic_load(&pool->stop)) {
    unsigned seen = atomic_load(&pool->epoch);
    if (anything_to_do(pool) && take_worker_slot(pool)) {
      bool worked = true;
      if (!single) (void)weir_openmp_single(&pool->openmp);
      single = true;
      while (worked && atomic_load(&pool->waiting) == 0)
        worked = do_some(worker);
      weir_pool_give_slot(pool);
      if (worked) continue;
    }
    if (!atomic_load(&pool->stop)) idle(pool, seen);
  }
  return NULL;
}

weir_status weir_pool_start_thread(weir_worker *w, weir_error *err) {
  atomic_store(&w->taken, true);
  if (pthread_create(&w->thread, NULL, thread_main, w) != 0)
    return weir_fail(err, WEIR_W6003, NULL,
                     "the system refused thread %d of %d",
                     w->pool->thread_count + 1, w->pool->threads);
  w->started = true;
  w->pool->thread_count++;
  return WEIR_OK;
}

static weir_status start_threads(weir_pool *pool, weir_error *err) {
  for (int i = 0; i < pool->threads - 1; i++)
    WEIR_TRY(weir_pool_start_thread(&pool->workers[i], err));
  return WEIR_OK;
}

static weir_status init_workers(weir_pool *pool, weir_error *err) {
  size_t bytes = 0;
  /* One for each thread of the pool and one for each caller with a slot. */
  pool->first_count = 2 * pool->threads - 1;
  pool->caller_count = pool->threads;
  if (!weir_size_mul((size_t)pool->first_count, sizeof(weir_worker), &bytes))
    return weir_fail_memory(err, SIZE_MAX);
  pool->workers = weir_alloc_aligned(pool->env->alloc, bytes, 64);
  if (pool->workers == NULL) return weir_fail_memory(err, bytes);
  memset(pool->workers, 0, bytes);
  for (int i = 0; i < pool->first_count; i++) {
    pool->workers[i].pool = pool;
    pool->workers[i].index = i;
  }
  atomic_store(&pool->worker_count, pool->first_count);
  return WEIR_OK;
}

static int default_threads(void) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  return cores < 1 ? 1 : cores > kMaxThreads ? kMaxThreads : (int)cores;
}

weir_status weir_pool_create(const weir_env *env,
                             const weir_pool_options *options,
                             weir_pool **out_pool, weir_error *err) {
  *out_pool = NULL;
  int threads = options != NULL ? options->threads : 0;
  if (threads < 0 || threads > kMaxThreads)
    return weir_fail(err, WEIR_W0002, NULL,
                     "threads is %d, expected 1 to %d (0: one per core)",
                     threads, kMaxThreads);
  weir_pool *pool = weir_alloc_aligned(env->alloc, sizeof *pool, 64);
  if (pool == NULL) return weir_fail_memory(err, sizeof *pool);
  memset(pool, 0, sizeof *pool);
  pool->env = env;
  pool->threads = threads > 0 ? threads : default_threads();
  pool->spin_ns = kDefaultSpinNs;
  if (options != NULL && options->spin_ns != 0)
    pool->spin_ns = options->spin_ns > 0 ? options->spin_ns : 0;
  if (options != NULL) pool->thread_start = options->thread_start;
  if (options != NULL) pool->thread_start_self = options->thread_start_self;
  pool->openmp = weir_openmp_find();
  pthread_mutex_init(&pool->overflow_lock, NULL);
  pthread_mutex_init(&pool->grow_lock, NULL);
  pthread_mutex_init(&pool->watch_lock, NULL);
  weir_status s = init_workers(pool, err);
  if (s == WEIR_OK) s = start_threads(pool, err);
  if (s == WEIR_OK)
    *out_pool = pool;
  else
    weir_pool_release(pool);
  return s;
}

void weir_pool_release(weir_pool *pool) {
  if (pool == NULL) return;
  atomic_store(&pool->stop, true);
  weir_pool_notify(pool);
  int count = atomic_load(&pool->worker_count);
  for (int i = 0; i < count; i++) {
    weir_worker *w = weir_pool_worker(pool, i);
    if (w->started) pthread_join(w->thread, NULL);
  }
  for (int i = pool->first_count; i < count; i++)
    weir_free(pool->env->alloc, weir_pool_worker(pool, i));
  assert(atomic_load(&pool->overflow_count) == 0);
  assert(pool->watches == NULL && pool->asleep == 0);
  pthread_mutex_destroy(&pool->overflow_lock);
  pthread_mutex_destroy(&pool->grow_lock);
  pthread_mutex_destroy(&pool->watch_lock);
  weir_free(pool->env->alloc, pool->workers);
  weir_free(pool->env->alloc, pool);
}
