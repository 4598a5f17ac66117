/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/quantity.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/base/number.h"

typedef struct unit {
  const char *name;
  int64_t factor;
} unit;

static const unit kSizes[] = {{"B", 1},
                              {"kB", 1000},
                              {"KB", 1000},
                              {"MB", 1000000},
                              {"GB", 1000000000},
                              {"TB", INT64_C(1000000000000)},
                              {"KiB", INT64_C(1) << 10},
                              {"MiB", INT64_C(1) << 20},
                              {"GiB", INT64_C(1) << 30},
                              {"TiB", INT64_C(1) << 40},
                              {"K", INT64_C(1) << 10},
                              {"M", INT64_C(1) << 20},
                              {"G", INT64_C(1) << 30},
                              {"T", INT64_C(1) << 40},
                              {NULL, 0}};
#define SECOND INT64_C(1000000000)
static const unit kTimes[] = {{"ns", 1},
                              {"us", 1000},
                              {"ms", 1000000},
                              {"s", SECOND},
                              {"m", 60 * SECOND},
                              {"min", 60 * SECOND},
                              {"h", 3600 * SECOND},
                              {"d", 86400 * SECOND},
                              {NULL, 0}};
static const unit kBits[] = {{"bit", 1},
                             {"kbit", 1000},
                             {"Mbit", 1000000},
                             {"Gbit", 1000000000},
                             {NULL, 0}};

/* ---- Reading */

static bool is_digit(weir_sv text, size_t at) {
  return at < text.size && text.data[at] >= '0' && text.data[at] <= '9';
}

/* Where the number that |text| begins with ends. An e belongs to it only before
 * an exponent, so that a unit may begin with one. */
static size_t number_end(weir_sv text) {
  size_t n = 0;
  while (is_digit(text, n) || (n < text.size && text.data[n] == '.')) n++;
  if (n == 0 || n == text.size || (text.data[n] != 'e' && text.data[n] != 'E'))
    return n;
  size_t exponent = n + 1;
  if (exponent < text.size &&
      (text.data[exponent] == '+' || text.data[exponent] == '-'))
    exponent++;
  if (!is_digit(text, exponent)) return n;
  while (is_digit(text, exponent)) exponent++;
  return exponent;
}

static weir_sv after_blanks(weir_sv text, size_t at) {
  while (at < text.size && text.data[at] == ' ') at++;
  return (weir_sv){text.data + at, text.size - at};
}

bool weir_quantity_split(weir_sv text, double *out_number, weir_sv *out_unit) {
  size_t n = number_end(text);
  double number;
  if (!weir_number_parse((weir_sv){text.data, n}, &number)) return false;
  if (!(number < 1e300)) return false; /* infinite, or as good as */
  *out_number = number;
  *out_unit = after_blanks(text, n);
  return true;
}

/* Reads |text| with one of |units|; |bare| is the factor of a number without
 * one, 0 when the unit must be there. */
static bool parse(weir_sv text, const unit *units, int64_t bare, int64_t *out) {
  weir_sv name;
  double number;
  int64_t factor = 0, count;
  if (!weir_quantity_split(text, &number, &name)) return false;
  if (name.size == 0) factor = bare;
  for (; name.size > 0 && units->name != NULL; units++)
    if (weir_sv_is(name, units->name)) factor = units->factor;
  if (factor == 0) return false;
  /* A double cannot hold an integer of more than 53 bits. */
  if (weir_number_parse_int((weir_sv){text.data, number_end(text)}, &count)) {
    if (__builtin_mul_overflow(count, factor, &count)) return false;
    *out = count;
    return true;
  }
  double product = number * (double)factor;
  if (!(product < 9223372036854775808.0)) return false;
  *out = (int64_t)product;
  return true;
}

bool weir_quantity_bytes(weir_sv text, int64_t *out_bytes) {
  return parse(text, kSizes, 1, out_bytes);
}

bool weir_quantity_time(weir_sv text, int64_t *out_ns) {
  return parse(text, kTimes, 0, out_ns);
}

bool weir_quantity_seconds(weir_sv text, int64_t *out_ns) {
  return parse(text, kTimes, SECOND, out_ns);
}

bool weir_quantity_rate(weir_sv text, int64_t *out_bytes_per_us) {
  int64_t a_second;
  if (text.size < 3 || memcmp(text.data + text.size - 2, "/s", 2) != 0)
    return false;
  text.size -= 2;
  if (!parse(text, kSizes, 1, &a_second)) {
    if (!parse(text, kBits, 0, &a_second)) return false;
    a_second /= 8;
  }
  if (a_second < 1000000) return false;
  *out_bytes_per_us = a_second / 1000000;
  return true;
}

/* ---- Printing */

/* |value| in the largest unit of which there are 10 or more; the smallest one
 * is printed in full up to 9999. */
static const char *print(int64_t value, const char *const units[4], int places,
                         char text[WEIR_QUANTITY_TEXT]) {
  double scale = 1;
  int i = 0;
  for (; i < 3 && (double)value >= 1e4 * scale; i++) scale *= 1e3;
  if (i == 0)
    snprintf(text, WEIR_QUANTITY_TEXT, "%" PRId64 " %s", value, units[0]);
  else
    snprintf(text, WEIR_QUANTITY_TEXT, "%.*f %s", places, (double)value / scale,
             units[i]);
  return text;
}

const char *weir_quantity_print_time(int64_t ns,
                                     char text[WEIR_QUANTITY_TEXT]) {
  static const char *const units[] = {"ns", "us", "ms", "s"};
  return print(ns, units, 2, text);
}

const char *weir_quantity_print_bytes(int64_t bytes,
                                      char text[WEIR_QUANTITY_TEXT]) {
  static const char *const units[] = {"B", "kB", "MB", "GB"};
  return print(bytes, units, 1, text);
}
