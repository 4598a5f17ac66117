/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_POOL_GROW_H_
#define WEIR_EXEC_POOL_GROW_H_

#include "runtime/exec/worker.h"

/* Threads and workers that a pool did not begin with. */

/* Sees to it that tasks are run though no caller waits: as many threads as the
 * pool has slots. Any thread. Errors: W6001, W6003. */
weir_status weir_pool_serve(weir_pool *pool, weir_error *err);

/* Gives |worker|'s slot back for as long as its thread sleeps in the middle of
 * an instruction; others steal the tasks in its deque. NULL: nothing to give.
 * On failure the slot is kept. Own worker only. Errors: W6001, W6003. */
weir_status weir_worker_sleep(weir_worker *worker, weir_error *err);

/* Takes a slot again, after a sleep that succeeded; blocks. */
void weir_worker_rise(weir_worker *worker);

#endif
