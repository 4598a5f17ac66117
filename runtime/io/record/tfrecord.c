/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/record/tfrecord.h"

#include "runtime/base/bytes/crc32c.h"
#include "runtime/base/bytes/reader.h"

enum { kHeadBytes = 12, kTailBytes = 4 };

static weir_status fail(const char *file, uint64_t byte, const char *what,
                        weir_error *err) {
  weir_mark at = {.file = file};
  return weir_fail(err, WEIR_W4028, &at, "%s, at byte %llu", what,
                   (unsigned long long)byte);
}

weir_status weir_tfrecord_next(weir_stream *stream, const char *file,
                               bool check_data, weir_bytes *out_data,
                               bool *out_end, weir_error *err) {
  weir_bytes b;
  uint64_t byte = weir_stream_at(stream);
  *out_data = (weir_bytes){NULL, 0};
  WEIR_TRY(weir_stream_peek(stream, kHeadBytes, &b, err));
  *out_end = b.size == 0;
  if (*out_end) return WEIR_OK;
  if (b.size < kHeadBytes)
    return fail(file, byte, "the file ends inside a record's length", err);
  weir_reader head = weir_reader_of(b.data, kHeadBytes);
  uint64_t length = weir_reader_u64le(&head);
  if (weir_crc32c_mask(weir_crc32c(0, b.data, 8)) != weir_reader_u32le(&head))
    return fail(file, byte, "a record's length has another checksum", err);
  weir_mark at = {.file = file};
  if (length > WEIR_STREAM_MOST - kHeadBytes - kTailBytes)
    return weir_fail(err, WEIR_W4036, &at,
                     "a record of %llu bytes, at byte %llu",
                     (unsigned long long)length, (unsigned long long)byte);
  size_t whole = kHeadBytes + (size_t)length + kTailBytes;
  WEIR_TRY(weir_stream_peek(stream, whole, &b, err));
  if (b.size < whole)
    return fail(file, byte, "the file ends inside a record", err);
  const uint8_t *data = b.data + kHeadBytes;
  weir_reader tail = weir_reader_of(data + length, kTailBytes);
  if (check_data && weir_crc32c_mask(weir_crc32c(0, data, (size_t)length)) !=
                        weir_reader_u32le(&tail))
    return fail(file, byte, "a record's data have another checksum", err);
  weir_stream_skip(stream, whole);
  *out_data = (weir_bytes){data, (size_t)length};
  return WEIR_OK;
}
