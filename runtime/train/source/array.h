/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_ARRAY_H_
#define WEIR_TRAIN_ARRAY_H_

#include "runtime/io/array/array_file.h"
#include "runtime/train/data/data_source.h"

/* Columns that are arrays: rows of tensors in memory or of files. */

/* A shard of a column: a tensor, or a file read row by row. */
typedef struct weir_array_part {
  weir_tensor *tensor;
  weir_array_file *file;
  int64_t first, rows; /* examples [first, first + rows) */
} weir_array_part;

typedef struct weir_array_column {
  weir_array_part *parts; /* in the data set's arena */
  uint32_t part_count;
} weir_array_column;

/* Makes a source of |count| columns and takes their parts over, also when it
 * fails. |infos| have name and mark; dtype and dims are filled in.
 * Errors: W4022, W4025, W6001. */
weir_status weir_source_arrays(const weir_source_context *context,
                               weir_array_column *columns,
                               weir_source_column *infos, uint32_t count,
                               weir_source **out_source, weir_error *err);

/* Releases the parts' tensors and files. */
void weir_array_columns_release(weir_array_column *columns, uint32_t count);

/* ---- For sources of files. */

/* Columns that are being opened. */
typedef struct weir_array_opening {
  const weir_source_context *context;
  weir_array_column *columns;
  weir_source_column *infos;
  uint32_t count;
  weir_error *err;
} weir_array_opening;

/* Makes |count| empty columns; makes |count| empty parts of column |c|.
 * Errors: W6001. */
weir_status weir_array_opening_columns(weir_array_opening *opening,
                                       uint32_t count);
weir_status weir_array_opening_parts(weir_array_opening *opening, uint32_t c,
                                     uint32_t count);
/* The source of the columns when |status| is WEIR_OK; else releases them and
 * gives |status| back. */
weir_status weir_array_opening_end(weir_array_opening *opening,
                                   weir_status status,
                                   weir_source **out_source);

/* Opens the array files of each column; the files' bytes tell .npy and idx
 * apart. An open function of sources. */
weir_status weir_source_array_files(const weir_source_context *context,
                                    weir_source **out_source, weir_error *err);

#endif
