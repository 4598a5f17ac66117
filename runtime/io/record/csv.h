/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_CSV_H_
#define WEIR_IO_CSV_H_

#include "runtime/base/sv.h"
#include "runtime/io/stream.h"

/* Comma-separated values, record by record from a stream (RFC 4180).
 *
 * Records end with LF or CR LF, the last one also with the file. A field that
 * starts with the quote runs to the next single quote, line ends and delimiters
 * included; a doubled quote inside stands for one. Elsewhere a quote is an
 * error, as is text after a closing one. Empty lines are passed over, as is a
 * byte order mark at the file's start. Fields are bytes: nothing is trimmed. */
typedef struct weir_csv_format {
  char delimiter;
  char quote; /* 0: fields are never quoted */
} weir_csv_format;

/* Zero it to begin; |alloc| and |format| are set by the caller. Fields other
 * than |fields| and |count| are the reader's. */
typedef struct weir_csv_reader {
  const weir_allocator *alloc;
  weir_csv_format format;
  weir_sv *fields; /* of the last record; lent until the next */
  uint32_t count, capacity;
  char *scratch; /* of quoted fields that hold quotes */
  size_t scratch_bytes;
} weir_csv_reader;

/* Frees the reader's memory; it may be used again. */
void weir_csv_reader_release(weir_csv_reader *reader);

/* Reads the record at which |stream| stands; its first line has number |*line|
 * (from 1), which moves on to that after it. |count| 0: the content ended.
 * Errors: W4026 with the line; W4036, those of weir_stream_peek, W6001. */
weir_status weir_csv_next(weir_csv_reader *reader, weir_stream *stream,
                          const char *file, uint64_t *line, weir_error *err);

#endif
