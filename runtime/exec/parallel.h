/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_PARALLEL_H_
#define WEIR_EXEC_PARALLEL_H_

#include "runtime/exec/worker.h"

/* Loops that several workers share. */

/* Runs the blocks of a loop on at most |most| threads, the caller among them;
 * they are dealt by counters. Inside a loop inside a loop the caller runs the
 * blocks itself. */
void weir_worker_share(weir_worker *worker, int most, int64_t blocks,
                       weir_block_fn fn, void *arg);

/* The same for a thread without a worker: all blocks in order. */
void weir_serial_for(void *self, int64_t blocks, weir_block_fn fn, void *arg);

/* Helps with one shared loop, if there is one. */
bool weir_worker_help(weir_worker *worker);

#endif
