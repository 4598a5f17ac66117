/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/bytes/crc32c.h"

#include <string.h>

#include "tests/check.h"

/* One bit at a time, from the definition. */
static uint32_t by_bits(uint32_t crc, const uint8_t *p, size_t size) {
  uint32_t c = ~crc;
  for (size_t i = 0; i < size; i++) {
    c ^= p[i];
    for (int b = 0; b < 8; b++) c = c >> 1 ^ (c & 1 ? 0x82F63B78u : 0);
  }
  return ~c;
}

/* RFC 3720 B.4, and the check value of the catalogue of CRCs. */
static void knows_published_values(void **state) {
  (void)state;
  uint8_t b[32];
  memset(b, 0, sizeof b);
  assert_int_equal(weir_crc32c(0, b, 32), 0x8a9136aa);
  memset(b, 0xff, sizeof b);
  assert_int_equal(weir_crc32c(0, b, 32), 0x62a8ab43);
  for (int i = 0; i < 32; i++) b[i] = (uint8_t)i;
  assert_int_equal(weir_crc32c(0, b, 32), 0x46dd794e);
  for (int i = 0; i < 32; i++) b[i] = (uint8_t)(31 - i);
  assert_int_equal(weir_crc32c(0, b, 32), 0x113fdb5c);
  assert_int_equal(weir_crc32c(0, "123456789", 9), 0xe3069283);
  assert_int_equal(weir_crc32c(0, NULL, 0), 0);
  assert_int_equal(weir_crc32c_mask(0), 0xa282ead8u);
}

static void all_ways_agree(void **state) {
  (void)state;
  uint8_t b[700];
  uint32_t x = 1;
  for (size_t i = 0; i < sizeof b; i++)
    b[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
  for (size_t from = 0; from < 9; from++)
    for (size_t size = 0; size < 600; size += size < 40 ? 1 : 37) {
      uint32_t want = by_bits(0x1234567u, b + from, size);
      assert_int_equal(weir_crc32c(0x1234567u, b + from, size), want);
      assert_int_equal(weir_crc32c_table(0x1234567u, b + from, size), want);
    }
}

/* Long enough for lanes that are summed at once. */
static void long_ones_agree(void **state) {
  (void)state;
  static uint8_t b[60000];
  uint32_t x = 1;
  for (size_t i = 0; i < sizeof b; i++)
    b[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
  for (size_t size = 12280; size < 12300; size++)
    assert_int_equal(weir_crc32c(7, b + 1, size), by_bits(7, b + 1, size));
  assert_int_equal(weir_crc32c(7, b, sizeof b), by_bits(7, b, sizeof b));
  for (size_t cut = 0; cut <= sizeof b; cut += 7919)
    assert_int_equal(weir_crc32c_join(weir_crc32c(0, b, cut),
                                      weir_crc32c(0, b + cut, sizeof b - cut),
                                      sizeof b - cut),
                     weir_crc32c(0, b, sizeof b));
}

static void pieces_join(void **state) {
  (void)state;
  const char *text = "the quick brown fox jumps over the lazy dog";
  size_t n = strlen(text);
  for (size_t cut = 0; cut <= n; cut++)
    assert_int_equal(
        weir_crc32c(weir_crc32c(0, text, cut), text + cut, n - cut),
        weir_crc32c(0, text, n));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(knows_published_values),
      cmocka_unit_test(all_ways_agree),
      cmocka_unit_test(long_ones_agree),
      cmocka_unit_test(pieces_join),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
