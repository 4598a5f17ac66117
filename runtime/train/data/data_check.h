/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_DATA_CHECK_H_
#define WEIR_TRAIN_DATA_CHECK_H_

#include "runtime/train/data/data.h"

/* Checks columns against the graph's inputs, and the batch size. */

/* Columns against the graph's inputs, the batch size. */
weir_status weir_data_check_columns(weir_dataset *set, weir_error *err);

#endif
