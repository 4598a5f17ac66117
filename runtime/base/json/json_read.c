/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>

#include "runtime/base/json/json.h"
#include "runtime/base/json/json_text.h"
#include "runtime/base/utf8.h"

/* A pull parser: one token for each call, one pass over the bytes, no memory.
 * Nesting is a stack of bits in one word, 1 for an object, so depth is bounded
 * and nothing recurses. Lines and columns are counted only for an error, by
 * going through the text again. */

/* The tokens that may come next. */
enum {
  kValue,      /* a value must */
  kFirst,      /* the first item of a collection, or its end */
  kAfterValue, /* a comma or the end of the collection */
  kDone        /* nothing but white space */
};

void weir_json_reader_init(weir_json_reader *r, weir_sv input, const char *file,
                           const weir_json_options *options) {
  if (input.data == NULL) input = WEIR_SV_LIT(""); /* not NULL + 0 */
  *r = (weir_json_reader){.input = input, .file = file, .state = kValue};
  r->depth_limit = WEIR_JSON_READ_DEPTH;
  if (options == NULL) return;
  r->base_offset = options->base_offset;
  if (options->depth > 0 && options->depth < WEIR_JSON_READ_DEPTH)
    r->depth_limit = options->depth;
}

static weir_mark mark_at(const weir_json_reader *r, size_t at) {
  weir_mark mark = {.file = r->file, .line = 1};
  size_t line_start = 0;
  for (size_t i = 0; i < at; i++) {
    if (r->input.data[i] != '\n') continue;
    mark.line++;
    line_start = i + 1;
  }
  weir_sv before = {r->input.data + line_start, at - line_start};
  mark.col = (uint32_t)weir_utf8_count(before) + 1;
  mark.end_line = mark.line;
  mark.end_col = mark.col + 1;
  return mark;
}

weir_mark weir_json_mark(const weir_json_reader *r) {
  return mark_at(r, r->token_at);
}

/* Stops the reader for good. */
static bool stop(weir_json_reader *r, size_t at, const char *why) {
  r->failure = why;
  r->failed_at = at;
  return false;
}

static bool at_char(const weir_json_reader *r, char c) {
  return r->at < r->input.size && r->input.data[r->at] == c;
}

static void skip_space(weir_json_reader *r) {
  while (at_char(r, ' ') || at_char(r, '\n') || at_char(r, '\r') ||
         at_char(r, '\t'))
    r->at++;
}

static bool stop_here(weir_json_reader *r, const char *why) {
  bool cut = r->at >= r->input.size;
  return stop(r, r->at, cut ? "the text ends in the middle" : why);
}

/* Reads from the opening quote to behind the closing one. */
static bool read_string(weir_json_reader *r) {
  size_t from = ++r->at;
  r->escaped = false;
  while (!at_char(r, '"')) {
    weir_sv rest = {r->input.data + r->at, r->input.size - r->at};
    uint32_t point = 0;
    size_t n = weir_utf8_decode(rest, &point);
    if (n == 0) return stop_here(r, "the text is not UTF-8 here");
    if (point < 0x20) return stop_here(r, "control character in a string");
    if (point == '\\') {
      size_t used = weir_json_unescape(r->input, r->at + 1, &point);
      if (used == 0) return stop_here(r, "not a JSON escape");
      r->escaped = true;
      n = 1 + used;
    }
    r->at += n;
  }
  r->text = (weir_sv){r->input.data + from, r->at - from};
  r->at++;
  return true;
}

static size_t skip_digits(weir_json_reader *r) {
  size_t from = r->at;
  while (r->at < r->input.size && r->input.data[r->at] >= '0' &&
         r->input.data[r->at] <= '9')
    r->at++;
  return r->at - from;
}

static bool read_number(weir_json_reader *r) {
  size_t from = r->at;
  if (at_char(r, '-')) r->at++;
  bool zero = at_char(r, '0');
  size_t digits = skip_digits(r);
  if (digits == 0) return stop_here(r, "expected a digit");
  if (zero && digits > 1)
    return stop(r, from, "a number does not start with 0");
  if (at_char(r, '.')) {
    r->at++;
    if (skip_digits(r) == 0) return stop_here(r, "expected a digit");
  }
  if (at_char(r, 'e') || at_char(r, 'E')) {
    r->at++;
    if (at_char(r, '-') || at_char(r, '+')) r->at++;
    if (skip_digits(r) == 0) return stop_here(r, "expected a digit");
  }
  r->text = (weir_sv){r->input.data + from, r->at - from};
  r->token = WEIR_JSON_NUMBER;
  return true;
}

static bool read_word(weir_json_reader *r, const char *word,
                      weir_json_token token) {
  size_t size = strlen(word);
  if (r->input.size - r->at < size ||
      memcmp(r->input.data + r->at, word, size) != 0)
    return stop(r, r->at, "expected a value");
  r->at += size;
  r->token = token;
  return true;
}

static uint64_t level_bit(const weir_json_reader *r) {
  assert(r->depth > 0 && r->depth <= WEIR_JSON_READ_DEPTH);
  return (uint64_t)1 << (r->depth - 1);
}

static bool in_object(const weir_json_reader *r) {
  return r->depth > 0 && (r->is_object & level_bit(r)) != 0;
}

static bool open_collection(weir_json_reader *r, bool object) {
  if (r->depth == r->depth_limit) return stop(r, r->at, "nested too deeply");
  r->at++;
  r->depth++;
  r->is_object &= ~level_bit(r);
  if (object) r->is_object |= level_bit(r);
  r->token = object ? WEIR_JSON_OBJECT_BEGIN : WEIR_JSON_ARRAY_BEGIN;
  r->state = kFirst;
  return true;
}

static bool close_collection(weir_json_reader *r) {
  assert(r->depth > 0);
  r->token = in_object(r) ? WEIR_JSON_OBJECT_END : WEIR_JSON_ARRAY_END;
  r->token_at = r->at++;
  r->depth--;
  r->state = r->depth > 0 ? kAfterValue : kDone;
  return true;
}

static bool read_value(weir_json_reader *r) {
  r->token_at = r->at;
  char c = r->at < r->input.size ? r->input.data[r->at] : '\0';
  if (c == '{' || c == '[') return open_collection(r, c == '{');
  r->state = r->depth > 0 ? kAfterValue : kDone;
  switch (c) {
    case '"':
      r->token = WEIR_JSON_STRING;
      return read_string(r);
    case 't':
      return read_word(r, "true", WEIR_JSON_TRUE);
    case 'f':
      return read_word(r, "false", WEIR_JSON_FALSE);
    case 'n':
      return read_word(r, "null", WEIR_JSON_NULL);
    default:
      if (c == '-' || (c >= '0' && c <= '9')) return read_number(r);
      return stop_here(r, "expected a value");
  }
}

static bool read_key(weir_json_reader *r) {
  r->token_at = r->at;
  if (!at_char(r, '"')) return stop_here(r, "expected a name in quotes");
  if (!read_string(r)) return false;
  skip_space(r);
  if (!at_char(r, ':')) return stop_here(r, "expected ':'");
  r->at++;
  r->token = WEIR_JSON_KEY;
  r->state = kValue;
  return true;
}

static bool read_end(weir_json_reader *r) {
  r->token_at = r->at;
  r->token = WEIR_JSON_END;
  return r->at == r->input.size || stop(r, r->at, "more text after the value");
}

static bool read_token(weir_json_reader *r) {
  skip_space(r);
  if (r->state == kDone) return read_end(r);
  if (r->state == kValue) return read_value(r);
  bool object = in_object(r);
  if (at_char(r, object ? '}' : ']')) return close_collection(r);
  if (r->state == kAfterValue) {
    if (!at_char(r, ','))
      return stop_here(r,
                       object ? "expected ',' or '}'" : "expected ',' or ']'");
    r->at++;
    skip_space(r);
  }
  return object ? read_key(r) : read_value(r);
}

static weir_status report(const weir_json_reader *r, weir_error *err) {
  weir_mark mark = mark_at(r, r->failed_at);
  return weir_fail(err, WEIR_W4013, r->file != NULL ? &mark : NULL,
                   "invalid JSON at byte %zu: %s",
                   r->base_offset + r->failed_at, r->failure);
}

weir_status weir_json_next(weir_json_reader *r, weir_json_token *out_token,
                           weir_error *err) {
  if (r->failure != NULL || !read_token(r)) return report(r, err);
  *out_token = r->token;
  return WEIR_OK;
}

weir_status weir_json_expect(weir_json_reader *r, weir_json_token want,
                             weir_error *err) {
  weir_json_token token;
  WEIR_TRY(weir_json_next(r, &token, err));
  if (token == want) return WEIR_OK;
  weir_mark mark = weir_json_mark(r);
  stop(r, r->token_at, "another value was expected");
  return weir_fail(err, WEIR_W4013, r->file != NULL ? &mark : NULL,
                   "at byte %zu: found %s, expected %s",
                   r->base_offset + r->token_at, weir_json_token_name(token),
                   weir_json_token_name(want));
}

weir_status weir_json_skip(weir_json_reader *r, weir_error *err) {
  weir_json_token token = r->token;
  if (token == WEIR_JSON_KEY) WEIR_TRY(weir_json_next(r, &token, err));
  if (token != WEIR_JSON_OBJECT_BEGIN && token != WEIR_JSON_ARRAY_BEGIN)
    return WEIR_OK;
  uint32_t outside = r->depth - 1;
  while (r->depth > outside) WEIR_TRY(weir_json_next(r, &token, err));
  return WEIR_OK;
}
