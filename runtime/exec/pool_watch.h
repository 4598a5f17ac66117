/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_POOL_WATCH_H_
#define WEIR_EXEC_POOL_WATCH_H_

#include "runtime/exec/worker.h"

/* Runs with a deadline or a cancel flag that may wait for a peer. */

enum { WEIR_WATCH_NS = 5000000 }; /* between two looks of an idle thread */

/* One of them; embedded in its owner's struct. */
typedef struct weir_watch {
  /* Keeps the owner from ending, under the pool's lock: it must not call the
   * pool. false: it has ended already. */
  bool (*hold)(struct weir_watch *watch);
  /* Looks whether the time is over, and lets go of the owner: it may be gone
   * afterwards. Without a lock. */
  void (*look)(struct weir_watch *watch);
  struct weir_watch *next, *before;
} weir_watch;

/* Any thread. Between the two idle threads look at it. */
void weir_pool_watch(weir_pool *pool, weir_watch *watch);
void weir_pool_unwatch(weir_pool *pool, weir_watch *watch);

/* Looks at some of them, unless another thread does; they take turns. */
void weir_pool_look(weir_pool *pool);

#endif
