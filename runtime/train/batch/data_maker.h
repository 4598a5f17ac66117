/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_DATA_MAKER_H_
#define WEIR_TRAIN_DATA_MAKER_H_

#include "runtime/train/data/data_internal.h"

/* Makes batches in slots. */

/* A maker at the start of epoch 0. Errors: W6001. */
weir_status weir_data_maker_init(weir_data_maker *maker,
                                 const weir_dataset *set, weir_error *err);

void weir_data_maker_release(weir_data_maker *maker);

/* Goes to example |at| of |epoch|, a multiple of the batch or the end. */
void weir_data_maker_seek(weir_data_maker *maker, uint64_t epoch, int64_t at);

/* Makes the next batch, or the end of an epoch, in |slot|, and gives its
 * status. */
weir_status weir_data_maker_next(weir_data_maker *maker, weir_data_slot *slot);

#endif
