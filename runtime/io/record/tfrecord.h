/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_TFRECORD_H_
#define WEIR_IO_TFRECORD_H_

#include "runtime/base/bytes/reader.h"
#include "runtime/base/sv.h"
#include "runtime/io/stream.h"

/* TFRecord files, plain or gzip: records of any bytes, each as its length (8
 * bytes, least significant first), the masked CRC-32C of those 8 bytes, the
 * data, the masked CRC-32C of the data. Source: TensorFlow's
 * core/lib/io/record_writer.h. */

/* Reads the record at which |stream| stands and moves on; |*out_data| is lent
 * until the stream is used again. |*out_end|: the content ended before it.
 * |check_data|: compare the data's CRC too, not the length's only.
 * Errors: W4028 with the byte; W4036, those of weir_stream_peek. */
weir_status weir_tfrecord_next(weir_stream *stream, const char *file,
                               bool check_data, weir_bytes *out_data,
                               bool *out_end, weir_error *err);

/* ---- tf.Example: a message of named features.
 *
 * Example {1: Features}, Features {1: repeated entry {1: name, 2: Feature}},
 * Feature {1: BytesList | 2: FloatList | 3: Int64List}, each list {1: repeated
 * value}, floats and integers packed or not. Unknown fields are passed over;
 * of a name that occurs twice the last one counts. Source: TensorFlow's
 * core/example/{example,feature}.proto. */

typedef enum weir_feature_kind {
  WEIR_FEATURE_NONE,
  WEIR_FEATURE_BYTES,
  WEIR_FEATURE_FLOAT,
  WEIR_FEATURE_INT64
} weir_feature_kind;

typedef struct weir_feature {
  weir_feature_kind kind; /* NONE: not there, or an empty message */
  weir_bytes list;        /* the list's message; lent from the example */
  int64_t count;          /* values */
} weir_feature;

/* The values of a feature, one after the other; false at the end. The kind must
 * be the feature's; the message was checked by weir_example_read. */
typedef struct weir_feature_values {
  weir_feature_kind kind;
  weir_reader list, packed;
} weir_feature_values;

#endif
