/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_DATA_OPEN_H_
#define WEIR_TRAIN_DATA_OPEN_H_

#include "runtime/train/data/data.h"

/* Opens a data set. */

/* Opens section |name|. Errors: W1001-W1009, W4001-W4039, W6001. */
weir_status weir_dataset_open(const weir_env *env, const weir_graph *graph,
                              weir_sv name, const weir_dataset_options *options,
                              weir_dataset **out_dataset, weir_error *err);

/* One more reference. */
weir_dataset *weir_dataset_ref(weir_dataset *dataset);

void weir_dataset_release(weir_dataset *dataset); /* NULL-safe */

/* Columns of an example. */
uint32_t weir_dataset_column_count(const weir_dataset *dataset);

/* The i-th column, lent. */
const weir_data_column *weir_dataset_column(const weir_dataset *dataset,
                                            uint32_t i);

/* Examples of one epoch; -1 when not known before it is read. */
int64_t weir_dataset_examples(const weir_dataset *dataset);

/* Batches of one epoch; -1 when not known before it is read. */
int64_t weir_dataset_batches(const weir_dataset *dataset);

#endif
