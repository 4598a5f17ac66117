/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_DATA_SLOT_H_
#define WEIR_TRAIN_DATA_SLOT_H_

#include "runtime/train/data/data_internal.h"

/* The memory of one batch. */

/* Allocates the memory of one batch. Errors: W6001. */
weir_status weir_data_slot_init(const weir_dataset *set, weir_data_slot *slot,
                                weir_error *err);

void weir_data_slot_release(const weir_dataset *set, weir_data_slot *slot);

#endif
