/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/yaml/yaml_scalar.h"

#include <math.h>

#include "runtime/base/number.h"
#include "runtime/base/yaml/yaml.h"

/* The YAML 1.2 core schema (yaml.org/spec/1.2.2, section 10.3.2). */

static int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

/* 0x and 0o numbers; no sign, as in the core schema. */
static bool prefixed_int(weir_sv text, int base, int64_t *out) {
  int64_t value = 0;
  if (text.size <= 2) return false;
  for (size_t i = 2; i < text.size; i++) {
    int digit = digit_value(text.data[i]);
    if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
        __builtin_add_overflow(value, digit, &value))
      return false;
  }
  *out = value;
  return true;
}

static bool has_sign(weir_sv text) {
  return text.size > 0 && (text.data[0] == '-' || text.data[0] == '+');
}

/* "010" is eight to some readers and ten to others: refused as a number. */
static bool leading_zero(weir_sv text) {
  size_t at = has_sign(text) ? 1 : 0;
  return text.size > at + 1 && text.data[at] == '0' &&
         digit_value(text.data[at + 1]) < 10;
}

bool weir_text_int(weir_sv text, int64_t *out) {
  if (weir_sv_starts_with(text, "0x")) return prefixed_int(text, 16, out);
  if (weir_sv_starts_with(text, "0o")) return prefixed_int(text, 8, out);
  return !leading_zero(text) && weir_number_parse_int(text, out);
}

static bool is_any(weir_sv text, const char *const *words, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (weir_sv_is(text, words[i])) return true;
  return false;
}

bool weir_text_float(weir_sv text, double *out) {
  static const char *const kInf[] = {".inf", ".Inf", ".INF"};
  static const char *const kNan[] = {".nan", ".NaN", ".NAN"};
  int64_t whole;
  if (is_any(text, kNan, 3)) {
    *out = NAN;
    return true;
  }
  weir_sv bare = text;
  if (has_sign(text)) bare = (weir_sv){text.data + 1, text.size - 1};
  if (is_any(bare, kInf, 3)) {
    *out = text.data[0] == '-' ? -INFINITY : INFINITY;
    return true;
  }
  if (weir_text_int(text, &whole)) {
    *out = (double)whole;
    return true;
  }
  return !leading_zero(text) && weir_number_parse(text, out);
}

float weir_text_single(weir_sv text, double value) {
  float single = (float)value;
  return weir_number_parse_float(text, &single) ? single : (float)value;
}

static bool is_plain(const weir_yaml *node) {
  return node->kind == WEIR_YAML_SCALAR && node->plain;
}

bool weir_yaml_int(const weir_yaml *node, int64_t *out) {
  return is_plain(node) && weir_text_int(node->text, out);
}

bool weir_yaml_float(const weir_yaml *node, double *out) {
  return is_plain(node) && weir_text_float(node->text, out);
}

bool weir_yaml_bool(const weir_yaml *node, bool *out) {
  static const char *const kTrue[] = {"true", "True", "TRUE"};
  static const char *const kFalse[] = {"false", "False", "FALSE"};
  if (!is_plain(node)) return false;
  bool yes = is_any(node->text, kTrue, 3);
  if (!yes && !is_any(node->text, kFalse, 3)) return false;
  *out = yes;
  return true;
}

bool weir_yaml_null(const weir_yaml *node) {
  static const char *const kNull[] = {"", "~", "null", "Null", "NULL"};
  return is_plain(node) && is_any(node->text, kNull, 5);
}
