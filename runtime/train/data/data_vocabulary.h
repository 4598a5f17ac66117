/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_DATA_VOCABULARY_H_
#define WEIR_TRAIN_DATA_VOCABULARY_H_

#include "runtime/io/run_folder.h"
#include "runtime/train/data/data.h"
#include "runtime/train/data/data_source.h"

/* Vocabularies of a data set's columns. */

/* The vocabulary of a column, lent; NULL when it has none. Texts and indices
 * are looked up in it; weir_vocabulary_write saves it. */
weir_vocabulary *weir_dataset_vocabulary(const weir_dataset *dataset,
                                         weir_sv column);

/* The vocabulary of |column| by |spec|; NULL and WEIR_OK when it is to be
 * built from the data. One reference. Errors: W4024, W4032, those of opening
 * files and data sets. */
weir_status weir_data_vocabulary_load(const weir_source_context *context,
                                      const weir_vocabulary_spec *spec,
                                      weir_sv column,
                                      weir_vocabulary **out_vocabulary,
                                      weir_error *err);

/* Writes the vocabularies that were built to the files that the section names
 * by `save`, beneath |run|: for a training alone. Errors: W4024, and those of
 * weir_run_save. */
weir_status weir_dataset_save(const weir_dataset *dataset,
                              const weir_run_folder *run, weir_error *err);

#endif
