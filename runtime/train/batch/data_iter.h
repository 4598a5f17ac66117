/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_DATA_ITER_H_
#define WEIR_TRAIN_DATA_ITER_H_

#include "runtime/train/data/data.h"

/* Batches of a data set, one after the other. */

/* An iterator at the start of epoch 0. Errors: W4002, W6001. */
weir_status weir_data_iter_create(weir_dataset *dataset,
                                  weir_data_iter **out_iter, weir_error *err);

void weir_data_iter_release(weir_data_iter *iter); /* NULL-safe */

/* The next batch. Blocks; no allocation in the steady state. */
weir_status weir_data_iter_next(weir_data_iter *iter, weir_batch *out_batch,
                                weir_error *err);

/* Where the iterator stands after the batch it gave last, as one JSON object
 * (epoch, example, shuffle state, file positions); and goes there again: the
 * batches that follow are then bit-equal. Errors: W4037, W6001. */
weir_status weir_data_iter_state(const weir_data_iter *iter,
                                 weir_strbuf *out_json, weir_error *err);

/* The state of an iterator that has given |batches| of |epoch|, an epoch that
 * has an end. */
weir_status weir_data_iter_state_at(const weir_data_iter *iter, uint64_t epoch,
                                    uint64_t batches, weir_strbuf *out_json,
                                    weir_error *err);

/* Goes to the position in |json|. Errors: W4037, W6001. */
weir_status weir_data_iter_restore(weir_data_iter *iter, weir_sv json,
                                   weir_error *err);

/* Time that _next spent waiting for data so far. */
int64_t weir_data_iter_wait_ns(const weir_data_iter *iter);

#endif
