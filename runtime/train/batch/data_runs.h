/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_DATA_RUNS_H_
#define WEIR_TRAIN_DATA_RUNS_H_

#include "runtime/train/data/data.h"

/* Batches by the number of a run.
 *
 * One process gives run r the r-th batch that its iterator reads, the ends of
 * epochs left out: batch r % n of epoch r / n, where n is the number of batches
 * of an epoch, the last and smaller one included. A reader goes to any of them
 * at once: the order of an epoch follows from (seed, epoch), and sources give
 * examples by number. So those who share the runs of one process read the
 * batches of that process, bit for bit, and nothing of the others'.
 *
 * The caller says which runs it will ask for next, and with `prefetch` a thread
 * makes those meanwhile. A reader is used by one thread at a time. */

typedef struct weir_data_runs weir_data_runs;

/* Errors: W4002, W6001. */
weir_status weir_data_runs_create(weir_dataset *dataset,
                                  weir_data_runs **out_runs, weir_error *err);
void weir_data_runs_release(weir_data_runs *runs); /* NULL-safe */

/* How many runs the thread makes ahead: the section's `prefetch`. */
uint32_t weir_data_runs_ahead(const weir_data_runs *runs);

/* Where run |run| stands in the order of one process. An epoch without end is
 * epoch 0. */
void weir_data_runs_place(const weir_dataset *dataset, uint64_t run,
                          uint64_t *out_epoch, uint64_t *out_batch);

/* The batch of |run|; there is never an end of an epoch. |ahead|: the |count|
 * runs that are likely to be asked for next, in that order; more than can be
 * made are left out. Blocks; no allocation in the steady state. An error is of
 * this run alone. Errors: the source's, W4037 (the number is out of range),
 * W6003. */
weir_status weir_data_runs_read(weir_data_runs *runs, uint64_t run,
                                const uint64_t *ahead, uint32_t count,
                                weir_batch *out_batch, weir_error *err);

/* Time that _read spent waiting for data so far. */
int64_t weir_data_runs_wait_ns(const weir_data_runs *runs);

#endif
