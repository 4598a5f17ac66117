/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/quantity.h"

#include "tests/check.h"

typedef bool (*reader)(weir_sv text, int64_t *out);

#define SECOND INT64_C(1000000000)

typedef struct row {
  const char *text;
  int64_t want; /* -1: refused */
} row;

static void check(const char *what, reader read, const row *rows) {
  for (; rows->text != NULL; rows++) {
    int64_t got = -1;
    bool ok = read(weir_sv_from(rows->text), &got);
    if (ok != (rows->want >= 0) || got != rows->want)
      fail_msg("%s '%s' is %lld, expected %lld", what, rows->text,
               (long long)got, (long long)rows->want);
  }
}

/* Texts that are no quantity in any unit: |unit| is put behind each. */
static void check_bad_numbers(const char *what, reader read, const char *unit) {
  static const char *const numbers[] = {
      "",     "-1",    "-0",  "+1",  "nan",   "NaN",   "inf",
      ".inf", ".nan",  "1e",  "1e+", "1..5",  ".",     "e3",
      "0x1",  "1_000", "1,5", " 1",  "1e999", "1e400", "9223372036854775808",
      "1e19", "one",   "1 1", "1\t", "--1"};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    char text[64];
    int64_t got = -7;
    snprintf(text, sizeof text, "%s%s", numbers[i], unit);
    if (read(weir_sv_from(text), &got) || got != -7)
      fail_msg("%s '%s' is taken as %lld", what, text, (long long)got);
  }
}

static void sizes(void **state) {
  (void)state;
  static const row rows[] = {{"0", 0},
                             {"1000", 1000},
                             {"512B", 512},
                             {"512 B", 512},
                             {"1kB", 1000},
                             {"1KB", 1000},
                             {"1.5 MB", 1500000},
                             {"2GB", 2000000000},
                             {"2TB", INT64_C(2000000000000)},
                             {"1KiB", 1024},
                             {"64MiB", 64 << 20},
                             {"16GiB", INT64_C(16) << 30},
                             {"1TiB", INT64_C(1) << 40},
                             {"4K", 4096},
                             {"3M", 3 << 20},
                             {"2G", INT64_C(2) << 30},
                             {"1T", INT64_C(1) << 40},
                             {"1e3", 1000},
                             {"1e3kB", 1000000},
                             {"2.5e-1KiB", 256},
                             {".5KiB", 512},
                             {"0.7", 0},
                             {"9223372036854775807", INT64_MAX},
                             {"9007199254740993", INT64_C(9007199254740993)},
                             {"8388607TiB", INT64_C(8388607) << 40},
                             {"8388608TiB", -1},
                             {"9e18B", INT64_C(9000000000000000000)},
                             {"1e999GB", -1},
                             {"1XB", -1},
                             {"GiB", -1},
                             {"1 GiB ", -1},
                             {"1gib", -1},
                             {"1s", -1},
                             {"1bit", -1},
                             {NULL, 0}};
  check("size", weir_quantity_bytes, rows);
  check_bad_numbers("size", weir_quantity_bytes, "");
  check_bad_numbers("size", weir_quantity_bytes, "B");
}

static void times(void **state) {
  (void)state;
  static const row rows[] = {{"50us", 50000},
                             {"1ns", 1},
                             {"1.5 ms", 1500000},
                             {"0s", 0},
                             {"30s", 30 * SECOND},
                             {"2m", 120 * SECOND},
                             {"2min", 120 * SECOND},
                             {"1.5h", 5400 * SECOND},
                             {"1d", 86400 * SECOND},
                             {"1e3 s", 1000 * SECOND},
                             {"106751d", INT64_C(106751) * 86400 * SECOND},
                             {"106752d", -1},
                             {"1e10s", -1},
                             {"30", -1},
                             {"30 sec", -1},
                             {"30S", -1},
                             {"30s ", -1},
                             {"s", -1},
                             {"1MB", -1},
                             {NULL, 0}};
  static const row bare[] = {{"30", 30 * SECOND},
                             {"0.25", SECOND / 4},
                             {"30ms", 30000000},
                             {"9223372037", -1},
                             {NULL, 0}};
  check("time", weir_quantity_time, rows);
  check("time", weir_quantity_seconds, bare);
  check_bad_numbers("time", weir_quantity_time, "s");
  check_bad_numbers("time", weir_quantity_seconds, "");
}

static void rates(void **state) {
  (void)state;
  static const row rows[] = {
      {"10GB/s", 10000}, {"10 GB/s", 10000}, {"1MB/s", 1},
      {"1.2GB/s", 1200}, {"1GiB/s", 1073},   {"8Gbit/s", 1000},
      {"8Mbit/s", 1},    {"8000kbit/s", 1},  {"8000000bit/s", 1},
      {"2000000/s", 2},  {"999999B/s", -1},  {"0GB/s", -1},
      {"7Mbit/s", -1},   {"10GB", -1},       {"10GB/h", -1},
      {"/s", -1},        {"GB/s", -1},       {NULL, 0}};
  check("rate", weir_quantity_rate, rows);
  check_bad_numbers("rate", weir_quantity_rate, "GB/s");
}

static void numbers_with_units_of_their_own(void **state) {
  (void)state;
  weir_sv unit;
  double number = 0;
  assert_true(weir_quantity_split(WEIR_SV_LIT("2.5 epochs"), &number, &unit));
  assert_true(number == 2.5);
  assert_true(weir_sv_is(unit, "epochs"));
  assert_true(weir_quantity_split(WEIR_SV_LIT("1epoch"), &number, &unit));
  assert_true(number == 1 && weir_sv_is(unit, "epoch"));
  assert_true(weir_quantity_split(WEIR_SV_LIT("3e2"), &number, &unit));
  assert_true(number == 300 && unit.size == 0);
  assert_false(weir_quantity_split(WEIR_SV_LIT("epoch"), &number, &unit));
  assert_false(weir_quantity_split(WEIR_SV_LIT(""), &number, &unit));
  assert_false(weir_quantity_split((weir_sv){NULL, 0}, &number, &unit));
}

static void printed(void **state) {
  (void)state;
  static const struct {
    int64_t value;
    const char *time, *bytes;
  } rows[] = {{0, "0 ns", "0 B"},
              {9999, "9999 ns", "9999 B"},
              {10000, "10.00 us", "10.0 kB"},
              {9999994, "9999.99 us", "10000.0 kB"},
              {10000000, "10.00 ms", "10.0 MB"},
              {18420000, "18.42 ms", "18.4 MB"},
              {10 * SECOND, "10.00 s", "10.0 GB"},
              {INT64_C(3600) * SECOND, "3600.00 s", "3600.0 GB"},
              {INT64_MAX, "9223372036.85 s", "9223372036.9 GB"},
              {INT64_MIN, "-9223372036854775808 ns", "-9223372036854775808 B"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[WEIR_QUANTITY_TEXT];
    assert_string_equal(weir_quantity_print_time(rows[i].value, text),
                        rows[i].time);
    assert_string_equal(weir_quantity_print_bytes(rows[i].value, text),
                        rows[i].bytes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sizes),
      cmocka_unit_test(times),
      cmocka_unit_test(rates),
      cmocka_unit_test(numbers_with_units_of_their_own),
      cmocka_unit_test(printed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
