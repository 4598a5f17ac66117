/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/record/tf_example.h"
#include "runtime/io/record/tfrecord.h"

#include "tests/io/io_check.h"
#include "tests/io/stream_check.h"

/* some.tfrecord: written by TensorBoard's RecordWriter and protobuf. */

static weir_status read_all(const void *data, size_t size, int *out_count,
                            weir_error *err) {
  mem_file m = {data, size};
  mem_env e;
  weir_blob *blob = mem_open(&e, &m);
  weir_stream *stream = mem_stream(&e, blob, 64);
  weir_bytes record;
  bool end = false;
  *out_count = 0;
  weir_status s = WEIR_OK;
  while (s == WEIR_OK && !end) {
    s = weir_tfrecord_next(stream, "f", true, &record, &end, err);
    if (s == WEIR_OK && !end) ++*out_count;
  }
  weir_stream_release(stream);
  mem_close(&e, blob);
  return s;
}

static void reads(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  io_bytes b = io_fixture("some.tfrecord");
  int count = 0;
  assert_ok(read_all(b.data, b.size, &count, &err), &err);
  assert_int_equal(count, 5);
  assert_ok(read_all("", 0, &count, &err), &err);
  assert_int_equal(count, 0);
}

/* Every bit that is turned is found, and every cut within a record. */
static void damaged(void **state) {
  (void)state;
  io_bytes b = io_fixture("some.tfrecord");
  int count = 0, whole = 0;
  for (size_t i = 0; i < 8 * b.size; i++) {
    weir_error err = WEIR_ERROR_INIT;
    b.data[i / 8] ^= (uint8_t)(1 << i % 8);
    weir_status s = read_all(b.data, b.size, &count, &err);
    if (s == WEIR_OK) fail_msg("bit %zu is not missed", i);
    if (strcmp(err.id, "W4028") != 0) assert_string_equal(err.id, "W4036");
    b.data[i / 8] ^= (uint8_t)(1 << i % 8);
  }
  for (size_t cut = 0; cut < b.size; cut++) {
    weir_error err = WEIR_ERROR_INIT;
    if (read_all(b.data, cut, &count, &err) == WEIR_OK)
      whole++;
    else
      assert_string_equal(err.id, "W4028");
  }
  assert_int_equal(whole, 5); /* between records */
}

static const weir_sv kNames[] = {WEIR_SV_LIT("x"), WEIR_SV_LIT("id"),
                                 WEIR_SV_LIT("word"), WEIR_SV_LIT("maybe")};

static void example_values(void **state) {
  (void)state;
  io_bytes b = io_fixture("some.tfrecord");
  mem_file m = {b.data, b.size};
  mem_env e;
  weir_blob *blob = mem_open(&e, &m);
  weir_stream *stream = mem_stream(&e, blob, 64);
  for (int i = 0; i < 5; i++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_bytes record, word;
    weir_feature f[4];
    float x;
    int64_t n;
    bool end;
    assert_ok(weir_tfrecord_next(stream, "f", true, &record, &end, &err), &err);
    assert_ok(weir_example_read(record, "f", kNames, 4, f, &err), &err);
    assert_int_equal(f[0].kind, WEIR_FEATURE_FLOAT);
    assert_int_equal(f[0].count, 2);
    weir_feature_values v = weir_feature_begin(&f[0]);
    assert_true(weir_feature_next_float(&v, &x) && x == (float)i);
    assert_true(weir_feature_next_float(&v, &x) && x == (float)i + 0.5f);
    assert_false(weir_feature_next_float(&v, &x));
    v = weir_feature_begin(&f[1]);
    assert_true(weir_feature_next_int(&v, &n) && n == -i);
    assert_true(weir_feature_next_int(&v, &n) && n == INT64_C(1) << 40);
    assert_false(weir_feature_next_int(&v, &n));
    v = weir_feature_begin(&f[2]);
    assert_true(weir_feature_next_bytes(&v, &word));
    assert_int_equal(word.size, i % 2 ? 5 : 3);
    assert_int_equal(f[3].kind,
                     i == 3 ? WEIR_FEATURE_NONE : WEIR_FEATURE_INT64);
  }
  weir_stream_release(stream);
  mem_close(&e, blob);
}

/* By hand: unpacked values, unknown fields, a name that occurs twice. */
static void other_encodings(void **state) {
  (void)state;
  static const uint8_t kUnpacked[] = {
      0x0a, 0x20, 0x18, 0x05,                               /* unknown 3 */
      0x0a, 0x09, 0x0a, 0x01, 'x',  0x12, 0x04, 0x1a, 0x02, /* x: int */
      0x08, 0x07,                                           /* 7 */
      0x0a, 0x11, 0x0a, 0x01, 'x',  0x12, 0x0c, 0x12, 0x0a, /* x: float */
      0x0d, 0,    0,    0x80, 0x3f,                         /* 1 */
      0x0d, 0,    0,    0,    0x40};                        /* 2 */
  weir_error err = WEIR_ERROR_INIT;
  weir_feature f;
  float x;
  weir_bytes b = {kUnpacked, sizeof kUnpacked};
  assert_ok(weir_example_read(b, "f", kNames, 1, &f, &err), &err);
  assert_int_equal(f.kind, WEIR_FEATURE_FLOAT);
  assert_int_equal(f.count, 2);
  weir_feature_values v = weir_feature_begin(&f);
  assert_true(weir_feature_next_float(&v, &x) && x == 1);
  assert_true(weir_feature_next_float(&v, &x) && x == 2);
  for (size_t cut = 1; cut < sizeof kUnpacked; cut++)
    assert_error(weir_example_read((weir_bytes){kUnpacked, cut}, "f", kNames, 1,
                                   &f, &err),
                 &err, "W4029");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads),
      cmocka_unit_test(damaged),
      cmocka_unit_test(example_values),
      cmocka_unit_test(other_encodings),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
