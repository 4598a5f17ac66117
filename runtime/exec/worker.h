/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_WORKER_H_
#define WEIR_EXEC_WORKER_H_

#include <pthread.h>

#include "kernels/kernel.h"
#include "runtime/exec/deque.h"
#include "runtime/exec/openmp.h"
#include "runtime/exec/pool.h"

/* The inside of the pool, as far as the executor uses it.
 *
 * A *worker* is a place to work at: a deque of ready tasks and the loops that
 * its thread shares out. Pool threads have one each for life; a caller takes
 * one for the length of a run:
 *
 *   weir_worker *w = weir_pool_enter(pool);   waits for one of N running slots
 *   weir_worker_push(w, task); ...
 *   weir_worker_finish(w, &remaining);        works until |remaining| is 0
 *
 * Running slots keep the budget: each working thread holds one, callers first.
 * A pool thread gives its slot back after the task or block in which a caller
 * came to wait. A caller without work holds neither a slot nor a worker. Tasks
 * left in the deque of a worker without a thread are stolen. */

typedef struct weir_worker weir_worker;
typedef struct weir_task weir_task;

/* A ready piece of work; embedded in its owner's struct. |run| returns a task
 * to go on with in the same thread, or NULL; it must not touch |task| once the
 * run it belongs to may have ended. */
struct weir_task {
  weir_task *(*run)(weir_task *task, weir_worker *worker);
  weir_task *next; /* the pool's, when deques are full */
};

/* ---- The parts, for pool.c and parallel.c only. */

enum { WEIR_JOB_DEPTH = 2, WEIR_JOB_SHARES = 16 };

/* Part of a loop's blocks, dealt by a counter. */
typedef struct weir_job_share {
  _Alignas(64) atomic_int_least64_t next;
  int64_t end;
} weir_job_share;

/* A loop being shared out. Each worker begins with a share of its own and then
 * helps with the others': loops over the same data one after the other find it
 * in their core's cache. Its memory is the worker's: a helper counts itself
 * in, looks whether the loop is on, works, counts itself out; the owner reuses
 * the job only when it is off and no helper is in. */
typedef struct weir_job {
  _Alignas(64) atomic_uint helpers; /* high bit: the owner sleeps */
  atomic_bool active;
  atomic_int joined; /* the next helper's number; the owner is 0 */
  int most;          /* threads that may work on it, the owner among them */
  weir_block_fn fn;
  void *arg;
  int share_count;
  weir_job_share shares[WEIR_JOB_SHARES];
} weir_job;

struct weir_worker {
  weir_deque deque;
  weir_job jobs[WEIR_JOB_DEPTH];
  weir_pool *pool;
  int index;
  int job_depth;     /* own thread only */
  atomic_bool taken; /* by a caller; of a pool thread's: always */
  pthread_t thread;
  bool started;
};

enum { WEIR_POOL_EXTRA = 1024 };

struct weir_pool {
  const weir_env *env;
  int threads;
  int first_count; /* of |workers|: pool threads' first, then callers' */
  atomic_int worker_count; /* with those made since (pool_grow.c) */
  int64_t spin_ns;
  weir_openmp openmp;
  void (*thread_start)(void *self);
  void *thread_start_self;
  weir_worker *workers;
  weir_worker *extra[WEIR_POOL_EXTRA];
  pthread_mutex_t grow_lock;      /* of the next four, and to make workers */
  int thread_count, caller_count; /* workers of either kind */
  int asleep;                     /* workers whose threads wait for a peer */
  bool starts;                    /* runs are started that nobody waits for */
  pthread_mutex_t watch_lock;
  struct weir_watch *watches, *last_watch; /* pool_watch.c */
  atomic_int watch_count;
  atomic_bool looking;
  pthread_mutex_t overflow_lock;
  weir_task *overflow; /* tasks that found their deque full */
  atomic_int overflow_count;
  _Alignas(64) atomic_uint epoch; /* changes when there is something to do */
  atomic_int sleepers;
  atomic_bool stop;
  _Alignas(64) atomic_int running; /* slots in use, at most |threads| */
  atomic_int waiting;              /* callers that want one */
  atomic_uint slot_freed;
  atomic_bool starved; /* a pool thread saw work but no slot */
};

/* Worker |index|; all below |worker_count| are there. */
static inline weir_worker *weir_pool_worker(weir_pool *pool, int index) {
  return index < pool->first_count ? &pool->workers[index]
                                   : pool->extra[index - pool->first_count];
}

#endif
