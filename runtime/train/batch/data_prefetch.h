/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_DATA_PREFETCH_H_
#define WEIR_TRAIN_DATA_PREFETCH_H_

#include "runtime/train/data/data_internal.h"

/* The thread that fills the slots ahead. */

/* Starts it unless it runs. Errors: W6003. */
weir_status weir_data_prefetch_start(weir_data_iter *iter, weir_error *err);

/* Stops it and forgets the batches it made. */
void weir_data_prefetch_stop(weir_data_iter *iter);

/* The next slot; blocks. |*out_wait_ns| is how long. */
const weir_data_slot *weir_data_prefetch_take(weir_data_iter *iter,
                                              int64_t *out_wait_ns);

#endif
