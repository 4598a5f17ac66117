/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/json/json_text.h"

#include <math.h>

#include "runtime/base/json/json.h"
#include "runtime/base/number.h"
#include "runtime/base/table.h"
#include "runtime/base/utf8.h"

/* Strings stay as they stand in the text until they are asked for: most keys
 * are only compared. An escape is never shorter than its bytes in UTF-8, so a
 * copy of the raw length is enough. */

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* Four hex digits at |at|, or -1. */
static int32_t hex4(weir_sv text, size_t at) {
  int32_t value = 0;
  if (text.size < 4 || at > text.size - 4) return -1;
  for (size_t i = at; i < at + 4; i++) {
    int digit = hex_digit(text.data[i]);
    if (digit < 0) return -1;
    value = value << 4 | digit;
  }
  return value;
}

size_t weir_json_unescape(weir_sv text, size_t at, uint32_t *out_point) {
  static const char kNames[] = "\"\\/bfnrt", kValues[] = "\"\\/\b\f\n\r\t";
  if (at >= text.size) return 0;
  const char *found = memchr(kNames, text.data[at], sizeof kNames - 1);
  if (found != NULL) {
    *out_point = (unsigned char)kValues[found - kNames];
    return 1;
  }
  int32_t high = text.data[at] == 'u' ? hex4(text, at + 1) : -1;
  if (high < 0 || (high >= 0xdc00 && high <= 0xdfff)) return 0;
  *out_point = (uint32_t)high;
  if (high < 0xd800 || high > 0xdbff) return 5;
  bool second = at + 6 < text.size && text.data[at + 5] == '\\' &&
                text.data[at + 6] == 'u';
  int32_t low = second ? hex4(text, at + 7) : -1;
  if (low < 0xdc00 || low > 0xdfff) return 0;
  *out_point = 0x10000u + (((uint32_t)high & 0x3ff) << 10 | (low & 0x3ff));
  return 11;
}

/* One decoded code point of the current text; advances |*at|. */
static size_t next_piece(const weir_json_reader *r, size_t *at, char *dst) {
  if (r->text.data[*at] != '\\') {
    *dst = r->text.data[(*at)++];
    return 1;
  }
  uint32_t point = 0;
  *at += 1 + weir_json_unescape(r->text, *at + 1, &point);
  return weir_utf8_encode(point, dst);
}

weir_status weir_json_text(const weir_json_reader *r, weir_arena *arena,
                           weir_sv *out_text, weir_error *err) {
  char *copy = weir_arena_string(arena, r->text.data, r->text.size);
  if (copy == NULL) return weir_fail_memory(err, r->text.size + 1);
  *out_text = (weir_sv){copy, r->text.size};
  if (!r->escaped) return WEIR_OK;
  size_t n = 0, at = 0;
  while (at < r->text.size) {
    char piece[4];
    size_t size = next_piece(r, &at, piece);
    memcpy(copy + n, piece, size); /* an escape is longer than its bytes */
    n += size;
  }
  copy[n] = '\0';
  out_text->size = n;
  return WEIR_OK;
}

bool weir_json_text_is(const weir_json_reader *r, const char *text) {
  size_t size = strlen(text);
  if (!r->escaped) return weir_sv_is(r->text, text);
  size_t n = 0, at = 0;
  while (at < r->text.size) {
    char piece[4];
    size_t got = next_piece(r, &at, piece);
    if (size - n < got || memcmp(text + n, piece, got) != 0) return false;
    n += got;
  }
  return n == size;
}

bool weir_json_get_int(const weir_json_reader *r, int64_t *out) {
  return r->token == WEIR_JSON_NUMBER && weir_number_parse_int(r->text, out);
}

bool weir_json_get_double(const weir_json_reader *r, double *out) {
  double value;
  if (r->token != WEIR_JSON_NUMBER || !weir_number_parse(r->text, &value) ||
      isinf(value))
    return false;
  *out = value;
  return true;
}

const char *weir_json_token_name(weir_json_token token) {
  static const char *const kNames[] = {
      [WEIR_JSON_END] = "the end of the text",
      [WEIR_JSON_OBJECT_BEGIN] = "an object",
      [WEIR_JSON_OBJECT_END] = "the end of an object",
      [WEIR_JSON_ARRAY_BEGIN] = "an array",
      [WEIR_JSON_ARRAY_END] = "the end of an array",
      [WEIR_JSON_KEY] = "a name",
      [WEIR_JSON_STRING] = "a string",
      [WEIR_JSON_NUMBER] = "a number",
      [WEIR_JSON_TRUE] = "true",
      [WEIR_JSON_FALSE] = "false",
      [WEIR_JSON_NULL] = "null"};
  WEIR_TABLE_OF(kNames, WEIR_JSON_TOKEN_COUNT);
  return kNames[token];
}
