/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/bytes/reader.h"

#include "tests/check.h"

static const uint8_t kBytes[8] = {1, 2, 3, 4, 5, 6, 7, 0xff};

static void reads_both_orders(void **state) {
  (void)state;
  weir_reader r = weir_reader_of(kBytes, sizeof kBytes);
  assert_int_equal(weir_reader_u8(&r), 1);
  assert_int_equal(weir_reader_u16le(&r), 0x0302);
  assert_int_equal(weir_reader_u32le(&r), 0x07060504);
  weir_reader_seek(&r, 0);
  assert_int_equal(weir_reader_u16be(&r), 0x0102);
  weir_reader_skip(&r, 2);
  assert_int_equal(weir_reader_u32be(&r), 0x050607ff);
  assert_int_equal(weir_reader_left(&r), 0);
  weir_reader_seek(&r, 0);
  assert_true(weir_reader_u64le(&r) == 0xff07060504030201);
  weir_reader_seek(&r, 0);
  assert_true(weir_reader_u64be(&r) == 0x01020304050607ff);
  assert_false(r.failed);
}

static void fails_once_and_stays_failed(void **state) {
  (void)state;
  weir_reader r = weir_reader_of(kBytes, 3);
  assert_int_equal(weir_reader_u32le(&r), 0);
  assert_true(r.failed);
  assert_int_equal(weir_reader_u8(&r), 0);
  assert_null(weir_reader_bytes(&r, 0));
  assert_int_equal(weir_reader_left(&r), 0);
  weir_reader_seek(&r, 0);
  assert_true(r.failed);
  r = weir_reader_of(kBytes, 3);
  weir_reader_seek(&r, 4);
  assert_true(r.failed);
  r = weir_reader_of(kBytes, 3);
  weir_reader_skip(&r, SIZE_MAX);
  assert_true(r.failed);
}

static void nothing_is_a_fine_input(void **state) {
  (void)state;
  weir_reader r = weir_reader_of(NULL, 0);
  assert_non_null(weir_reader_bytes(&r, 0));
  weir_reader_seek(&r, 0);
  assert_false(r.failed);
  assert_int_equal(weir_reader_u8(&r), 0);
  assert_true(r.failed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_both_orders),
      cmocka_unit_test(fails_once_and_stays_failed),
      cmocka_unit_test(nothing_is_a_fine_input),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
