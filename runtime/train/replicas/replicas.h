/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_REPLICAS_H_
#define WEIR_TRAIN_REPLICAS_H_

#include "runtime/train/loop/loop.h"

/* Replicas between graphs in one process: threads that compute gradients on
 * batches of their own, for a loop that applies them.
 *
 * The loop's thread is the server and the coordinator: it reads batches, deals
 * them to idle replicas with their run numbers, applies what comes back by one
 * bound update program, and does all work after an update. Replicas run the
 * worker's program of the same session: a pull is the variables' buffers at the
 * start of the run, an update is computed into spare ones, so neither copies.
 *
 *   sync     runs N t .. N t + N - 1 are dealt once t updates are done, and
 *            applied in their order: the bits of `accumulate: N`, whatever the
 *            number of replicas
 *   async    dealt when a replica is idle, applied as they end; rate and step
 *            follow from the number of updates at the pull
 *   bounded  likewise, but no replica begins more than s runs ahead of the
 *            slowest
 *
 * A checkpoint is of a moment when no run is under way: near one, nothing is
 * dealt until all has been applied. */

/* Starts the threads, once there is a session and data. Errors: W1122, W5021,
 * W6001, W6003. */
weir_status weir_replicas_start(weir_loop *loop, weir_error *err);
/* Ends the threads. NULL-safe. */
void weir_replicas_release(weir_loop *loop);

/* Deals, waits for one run and applies it; or ends the epoch of the data.
 * Errors: W5020, the runs' own, those of weir_loop_end_epoch. */
weir_status weir_replicas_turn(weir_loop *loop, weir_error *err);
/* Applies all that is under way. Errors: as above. */
weir_status weir_replicas_drain(weir_loop *loop, weir_error *err);
/* Hands the account of replicas to the loop's callback. */
void weir_replicas_tell(weir_loop *loop);

#endif
