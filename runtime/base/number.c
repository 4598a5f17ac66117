/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Text to the nearest double, and a double to the shortest of a few texts that
 * reads back as the same bits; neither depends on the locale. Most numbers are
 * small enough to be exact by one multiplication; others go to strtod, as
 * digits and exponent. */

/* 767 digits decide any double; one more stands for all that follow. */
enum { kDigits = 770, kExponentMost = 100000 };

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/* A decimal number taken apart: digits * 10^exponent. */
typedef struct decimal {
  bool negative, sticky; /* |sticky|: a digit past the kept ones is not 0 */
  size_t count;
  int64_t exponent;
  char digits[kDigits];
} decimal;

static void add_digit(decimal *d, char c, bool fraction) {
  bool leading = d->count == 0 && c == '0';
  if (fraction && (leading || d->count < kDigits)) d->exponent--;
  if (!fraction && !leading && d->count >= kDigits) d->exponent++;
  if (leading) return;
  if (d->count < kDigits)
    d->digits[d->count++] = c;
  else
    d->sticky |= c != '0';
}

static bool parse_exponent(weir_sv text, size_t at, int64_t *exponent) {
  bool negative = at < text.size && text.data[at] == '-';
  if (at < text.size && (text.data[at] == '-' || text.data[at] == '+')) at++;
  if (at == text.size) return false;
  int64_t value = 0;
  for (; at < text.size; at++) {
    if (!is_digit(text.data[at])) return false;
    if (value < kExponentMost) value = value * 10 + (text.data[at] - '0');
  }
  *exponent += negative ? -value : value;
  return true;
}

static bool parse_decimal(weir_sv text, decimal *d) {
  size_t at = 0, digits = 0;
  d->sticky = false;
  d->count = 0;
  d->exponent = 0;
  d->negative = text.size > 0 && text.data[0] == '-';
  if (text.size > 0 && (text.data[0] == '-' || text.data[0] == '+')) at++;
  for (bool fraction = false; at < text.size; at++) {
    char c = text.data[at];
    if (is_digit(c)) {
      add_digit(d, c, fraction);
      digits++;
    } else if (c == '.' && !fraction) {
      fraction = true;
    } else {
      break;
    }
  }
  if (digits == 0) return false;
  if (at == text.size) return true;
  if (text.data[at] != 'e' && text.data[at] != 'E') return false;
  return parse_exponent(text, at + 1, &d->exponent);
}

static const double kTens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                               1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                               1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Exact when digits and power of ten both are (W. D. Clinger, PLDI 1990): one
 * rounding happens. */
static bool small_value(const decimal *d, double *out) {
  if (d->count > 15 || d->exponent < -22 || d->exponent > 22) return false;
  int64_t n = 0;
  for (size_t i = 0; i < d->count; i++) n = n * 10 + (d->digits[i] - '0');
  double value = (double)n;
  *out = d->exponent < 0 ? value / kTens[-d->exponent]
                         : value * kTens[d->exponent];
  return true;
}

enum { TEXT_ROOM = kDigits + 32 };

/* Digits and exponent without a point, which a locale could change. */
static void put_text(const decimal *d, char text[TEXT_ROOM]) {
  size_t n = d->count;
  memcpy(text, d->digits, n);
  int64_t exponent = d->exponent;
  if (d->sticky) {
    text[n++] = '1';
    exponent--;
  }
  snprintf(text + n, TEXT_ROOM - n, "e%lld", (long long)exponent);
}

bool weir_number_parse(weir_sv text, double *out) {
  decimal d;
  char plain[TEXT_ROOM];
  if (!parse_decimal(text, &d)) return false;
  double value = 0;
  if (d.count > 0 && !small_value(&d, &value)) {
    put_text(&d, plain);
    value = strtod(plain, NULL);
  }
  *out = d.negative ? -value : value;
  return true;
}

bool weir_number_parse_float(weir_sv text, float *out) {
  decimal d;
  char plain[TEXT_ROOM];
  if (!parse_decimal(text, &d)) return false;
  float value = 0;
  if (d.count > 0) {
    put_text(&d, plain);
    value = strtof(plain, NULL);
  }
  *out = d.negative ? -value : value;
  return true;
}

bool weir_number_parse_int(weir_sv text, int64_t *out) {
  size_t at = 0;
  bool negative = text.size > 0 && text.data[0] == '-';
  if (text.size > 0 && (text.data[0] == '-' || text.data[0] == '+')) at++;
  if (at == text.size) return false;
  int64_t value = 0; /* kept negative: that side is the longer one */
  for (; at < text.size; at++) {
    if (!is_digit(text.data[at])) return false;
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_sub_overflow(value, text.data[at] - '0', &value))
      return false;
  }
  if (!negative && value == INT64_MIN) return false;
  *out = negative ? value : -value;
  return true;
}

/* Turns the locale's decimal point, of any bytes, into ".". */
static size_t put_point(char *text, size_t size) {
  size_t n = 0;
  for (size_t i = 0; i < size; i++) {
    char c = text[i];
    if (is_digit(c) || c == '-' || c == '+' || c == 'e')
      text[n++] = c;
    else if (n > 0 && text[n - 1] != '.')
      text[n++] = '.';
  }
  text[n] = '\0';
  return n;
}

static size_t format_with(char *dst, double value, int precision) {
  int n = snprintf(dst, WEIR_NUMBER_TEXT, "%.*g", precision, value);
  return put_point(dst, (size_t)n);
}

static bool format_special(char *dst, double value, size_t *size) {
  const char *word = isnan(value) ? "NaN"
                     : value > 0  ? "Infinity"
                                  : "-Infinity";
  if (isfinite(value)) {
    if (value != floor(value) || fabs(value) > 999999 || signbit(value))
      return false;
    *size = (size_t)snprintf(dst, WEIR_NUMBER_TEXT, "%d", (int)value);
    return true;
  }
  *size = (size_t)snprintf(dst, WEIR_NUMBER_TEXT, "%s", word);
  return true;
}

size_t weir_number_format(char dst[WEIR_NUMBER_TEXT], double value) {
  size_t n = 0;
  if (format_special(dst, value, &n)) return n;
  for (int precision = 15; precision <= 17; precision++) {
    double back = 0;
    n = format_with(dst, value, precision);
    weir_number_parse((weir_sv){dst, n}, &back);
    if (back == value) break;
  }
  return n;
}

size_t weir_number_format_float(char dst[WEIR_NUMBER_TEXT], float value) {
  size_t n = 0;
  if (format_special(dst, value, &n)) return n;
  for (int precision = 6; precision <= 9; precision++) {
    double back = 0;
    n = format_with(dst, value, precision);
    weir_number_parse((weir_sv){dst, n}, &back);
    if ((float)back == value) break;
  }
  return n;
}
