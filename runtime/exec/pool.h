/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_POOL_H_
#define WEIR_EXEC_POOL_H_

#include "runtime/base/env.h"
#include "runtime/base/status.h"

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

#endif
