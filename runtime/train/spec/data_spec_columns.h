/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_DATA_SPEC_COLUMNS_H_
#define WEIR_TRAIN_DATA_SPEC_COLUMNS_H_

#include "runtime/train/spec/data_spec.h"

/* Keys of section `data` that speak of columns. */

/* Columns, features, ignore, normalise, bucketize, hash_bucket, vocabulary. */
weir_status weir_data_spec_columns(weir_data_spec *spec, weir_arena *arena,
                                   weir_error *err);

/* Reads a vocabulary's description, a list or a map. */
weir_status weir_vocabulary_spec_read(const weir_yaml *y,
                                      weir_vocabulary_spec *out,
                                      weir_error *err);

#endif
