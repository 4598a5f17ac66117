/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_POOL_H_
#define WEIR_EXEC_POOL_H_

#include <stdatomic.h>

#include "runtime/base/env.h"
#include "runtime/base/status.h"
#include "runtime/exec/openmp.h"

typedef struct weir_worker weir_worker;

typedef struct weir_task weir_task;

/* The one owner of the cores: a work-stealing pool of |threads| running
 * threads, the caller of a run among them. Idle threads spin some tens of
 * microseconds, then sleep on a futex. Every pool thread tells OpenMP, once,
 * to use one thread, so that oneDNN never opens a team. */
typedef struct weir_pool weir_pool;

typedef struct weir_pool_options {
  int threads;     /* running at once, callers included; 0: one per core */
  int64_t spin_ns; /* before sleeping; 0: 50 us; -1: never spin */
  /* Called first in every pool thread; may be NULL. */
  void (*thread_start)(void *self);
  void *thread_start_self;
} weir_pool_options;

/* Errors: W6001, W6003 (no thread), W0002 (threads outside 1..256). */
weir_status weir_pool_create(const weir_env *env,
                             const weir_pool_options *options,
                             weir_pool **out_pool, weir_error *err);
void weir_pool_release(weir_pool *pool); /* joins; NULL-safe */
int weir_pool_threads(const weir_pool *pool);

/* Waits for a running slot and takes a worker; never NULL. Any thread. */
weir_worker *weir_pool_enter(weir_pool *pool);

/* Gives both back. By the thread that entered. */
void weir_pool_leave(weir_worker *worker);

/* Makes |task| ready from a thread without a worker. Never fails. */
void weir_pool_submit(weir_pool *pool, weir_task *task);

/* Makes |task| ready, wakes a thread. Own worker only. Never fails. */
void weir_worker_push(weir_worker *worker, weir_task *task);

/* Works on ready tasks and shared loops until |*remaining| is 0, then leaves.
 * While there is nothing to do the slot and the worker are given back, so a run
 * that waits for another keeps nobody from running it. */
void weir_worker_finish(weir_worker *worker, const atomic_int *remaining);

/* Tells waiting threads that a counter they wait for became 0. */
void weir_pool_notify(weir_pool *pool);

/* OpenMP as the pool found it when it was made; lent. */
const weir_openmp *weir_pool_openmp(const weir_pool *pool);

/* Wakes up to |count| threads. */
void weir_pool_wake(weir_pool *pool, int count);

/* ---- For pool_grow.c. */

/* Gives a running slot back. */
void weir_pool_give_slot(weir_pool *pool);

/* Takes one, before pool threads do; blocks. */
void weir_pool_take_slot(weir_pool *pool);

/* Starts |worker|'s thread. Errors: W6003. */
weir_status weir_pool_start_thread(weir_worker *worker, weir_error *err);

#endif
