/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_ARRAY_FILE_H_
#define WEIR_IO_ARRAY_FILE_H_

#include "runtime/io/stream.h"
#include "runtime/tensor/tensor.h"

/* A .npy or IDX file, plain or gzip, read row by row: a row is all that has one
 * index of the first dimension. The file is checked when it is opened, its data
 * stay where they are. Immutable; each reading thread brings a stream of its
 * own. Arrays in Fortran order have no rows in one piece: weir_array_file_load
 * reads them whole. */
typedef struct weir_array_file {
  weir_blob *blob;
  weir_dtype dtype;
  weir_shape shape; /* of the whole, known, rank >= 1 */
  int64_t rows;
  size_t row_bytes;     /* of a row as given */
  size_t raw_row_bytes; /* of a row in the file */
  size_t row_elements;
  uint64_t data_at; /* byte of the content where they start */
  bool swap, is_bool, fortran;
} weir_array_file;

/* Errors: those of weir_blob_open, W4003 (.npy), W4006 (IDX), W4007, W4008 for
 * other files, W6001. */
weir_status weir_array_file_open(const weir_env *env, const char *root,
                                 const char *path, weir_array_file **out_file,
                                 weir_error *err);
void weir_array_file_release(weir_array_file *file); /* NULL-safe */

/* Rows [first, first + count) into |dst|. Not for Fortran order. |stream| is
 * used for gzip files only; their checksum is compared when the last row is
 * read. Errors: those of weir_stream_attach. */
weir_status weir_array_file_read(const weir_array_file *file,
                                 weir_stream *stream, int64_t first,
                                 int64_t count, void *dst, weir_error *err);

/* All of it as a tensor. */
weir_status weir_array_file_load(const weir_array_file *file,
                                 weir_tensor **out_tensor, weir_error *err);

#endif
