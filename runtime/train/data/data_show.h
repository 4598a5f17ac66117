/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_DATA_SHOW_H_
#define WEIR_TRAIN_DATA_SHOW_H_

#include "runtime/base/json/json.h"
#include "runtime/train/data/data.h"

/* The contents of a data set, for people and for programs: columns, examples,
 * batches, files, the first rows, and how often each value of a small integer
 * column (a label) occurs in an epoch. Reads the epoch, at most 1,000,000
 * examples of it. Errors: those of weir_data_iter_next, W6001. */

/* Appends some lines of text. */
weir_status weir_dataset_show(weir_dataset *dataset, weir_strbuf *out,
                              weir_error *err);
/* Writes the same as one object. */
weir_status weir_dataset_show_json(weir_dataset *dataset,
                                   weir_json_writer *writer, weir_error *err);

#endif
