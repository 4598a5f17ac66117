/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_RECORDS_H_
#define WEIR_TRAIN_RECORDS_H_

#include "runtime/train/data/data_source.h"

/* Files of records of any length (csv rows, TFRecords, tokens), numbered.
 *
 * All files are read once when they are opened: that counts the records, finds
 * damage, and fills an index with the place of every k-th record; k
 * grows so that the index stays below 256 KiB or 1/64 of the files. A cursor
 * then goes to any record from the place before it that is nearest: where it
 * stands, where it stood a while ago (one place for each lane of a stream), or
 * the index. The format is a function that reads one record. */

typedef struct weir_record_place {
  uint64_t offset; /* of the content */
  uint64_t line;   /* from 1 */
  uint32_t file;
} weir_record_place;

typedef struct weir_records {
  const weir_env *env;
  weir_blob **blobs;
  uint32_t blob_count;
  int64_t count;  /* records */
  int64_t stride; /* between places in the index, a power of two */
  weir_record_place *index;
  size_t index_count, index_capacity, index_most;
} weir_records;

/* Reads the record at which |stream| stands. |*end|: the file ended before it.
 * The place's line is moved on. */
typedef weir_status (*weir_record_next_fn)(void *self, weir_stream *stream,
                                           const char *file,
                                           weir_record_place *place, bool *end,
                                           weir_error *err);

/* Opens all files of |files|. The memory is freed by close, also after a
 * failure. */
weir_status weir_records_open(weir_records *records,
                              const weir_source_context *context,
                              const weir_files_spec *files, weir_error *err);
void weir_records_close(weir_records *records);
/* Whether any of the files is gzip; |*out_file| is the first such. */
bool weir_records_packed(const weir_records *records, const char **out_file);

typedef struct weir_record_hint {
  int64_t at; /* -1: empty */
  weir_record_place place;
} weir_record_hint;

/* A reader of records; one thread. */
typedef struct weir_record_cursor {
  const weir_records *records;
  weir_stream *stream;
  int64_t at; /* number of the record at |place| */
  weir_record_place place;
  weir_record_hint *hints;
  size_t hint_mask;
} weir_record_cursor;

/* |lanes|: how many places are visited in turn. Errors: W6001. */
weir_status weir_record_cursor_init(weir_record_cursor *cursor,
                                    const weir_records *records, int64_t lanes,
                                    weir_error *err);
void weir_record_cursor_release(weir_record_cursor *cursor);

/* Reads all records from the first to the last and builds the index; |next| is
 * called for each. */
weir_status weir_records_scan(weir_records *records, weir_record_next_fn next,
                              void *self, weir_error *err);
/* Goes to record |at|, which is there, and reads it; those passed over are read
 * with |skip|. */
weir_status weir_record_cursor_read(weir_record_cursor *cursor, int64_t at,
                                    weir_record_next_fn next,
                                    weir_record_next_fn skip, void *self,
                                    weir_error *err);

#endif
