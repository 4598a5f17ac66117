/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/record/tf_example.h"
#include "runtime/io/record/tfrecord.h"
#include "tests/fuzz/fuzz_blob.h"

/* Reads the input as a TFRecord file, its records as tf.Example, and then all
 * of the input as one tf.Example, which no checksum guards. */

static void read_example(weir_bytes bytes) {
  static const weir_sv kNames[] = {WEIR_SV_LIT("x"), WEIR_SV_LIT("word")};
  weir_error err = WEIR_ERROR_INIT;
  weir_feature f[2];
  weir_status s = weir_example_read(bytes, "f", kNames, 2, f, &err);
  FUZZ_CHECK((s == WEIR_OK) == (err.id[0] == '\0'));
  for (int i = 0; s == WEIR_OK && i < 2; i++) {
    weir_feature_values v = weir_feature_begin(&f[i]);
    weir_bytes b;
    float x;
    int64_t n, count = 0;
    FUZZ_CHECK(f[i].count >= 0 && (uint64_t)f[i].count <= bytes.size);
    if (f[i].kind == WEIR_FEATURE_BYTES)
      for (; weir_feature_next_bytes(&v, &b); count++)
        FUZZ_CHECK(b.size <= bytes.size);
    if (f[i].kind == WEIR_FEATURE_FLOAT)
      while (weir_feature_next_float(&v, &x)) count++;
    if (f[i].kind == WEIR_FEATURE_INT64)
      while (weir_feature_next_int(&v, &n)) count++;
    FUZZ_CHECK(count == f[i].count);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_blob b;
  weir_stream *stream = fuzz_blob_open(&b, data, size, 64);
  bool end = false;
  while (!end) {
    weir_error err = WEIR_ERROR_INIT;
    weir_bytes record;
    if (weir_tfrecord_next(stream, "f", true, &record, &end, &err) != WEIR_OK)
      break;
    if (!end) read_example(record);
  }
  fuzz_blob_close(&b, stream);
  read_example((weir_bytes){data, size});
  return 0;
}
