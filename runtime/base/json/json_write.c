/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "runtime/base/json/json.h"
#include "runtime/base/number.h"
#include "runtime/base/utf8.h"

/* A writer with a buffer and two words of bits, one bit for each open bracket:
 * whether it is an object's, and whether it has items yet. Misuse, such as a
 * value without a key, sets |failed| like a sink that refuses bytes: a caller
 * looks once, at the end. */

void weir_json_writer_init(weir_json_writer *w, weir_writer out,
                           uint32_t indent) {
  w->out = out;
  w->indent = indent;
  w->depth = 0;
  w->row_depth = UINT32_MAX;
  w->is_object = w->has_items = 0;
  w->after_key = w->failed = false;
  w->used = 0;
}

static void flush(weir_json_writer *w) {
  if (w->used > 0 && !w->failed)
    w->failed = !w->out.write(w->out.self, w->buffer, w->used);
  w->used = 0;
}

static void put(weir_json_writer *w, const char *data, size_t size) {
  while (size > 0 && !w->failed) {
    if (w->used == sizeof w->buffer) flush(w);
    size_t n = sizeof w->buffer - w->used;
    if (n > size) n = size;
    memcpy(w->buffer + w->used, data, n);
    w->used += n;
    data += n;
    size -= n;
  }
}

static void put_text(weir_json_writer *w, const char *text) {
  put(w, text, strlen(text));
}

static bool on_one_line(const weir_json_writer *w) {
  return w->indent == 0 || w->depth >= w->row_depth;
}

static void new_line(weir_json_writer *w) {
  put(w, "\n", 1);
  for (uint64_t i = 0; i < (uint64_t)w->indent * w->depth; i++) put(w, " ", 1);
}

static uint64_t level_bit(const weir_json_writer *w) {
  assert(w->depth > 0 && w->depth <= WEIR_JSON_WRITE_DEPTH);
  return (uint64_t)1 << (w->depth - 1);
}

/* Comma and line break before an item of the open collection. */
static void separate(weir_json_writer *w) {
  bool first = (w->has_items & level_bit(w)) == 0;
  if (!first)
    put(w, on_one_line(w) && w->indent > 0 ? ", " : ",",
        on_one_line(w) && w->indent > 0 ? 2 : 1);
  if (!on_one_line(w)) new_line(w);
  w->has_items |= level_bit(w);
}

/* The separator before a value; in an object its key has written that. */
static void begin_value(weir_json_writer *w) {
  if (w->depth == 0) return;
  if ((w->is_object & level_bit(w)) != 0) {
    if (!w->after_key) w->failed = true;
    w->after_key = false;
  } else {
    separate(w);
  }
}

static void begin(weir_json_writer *w, bool object, bool one_line) {
  begin_value(w);
  if (w->depth == WEIR_JSON_WRITE_DEPTH) w->failed = true;
  if (w->failed) return;
  put(w, object ? "{" : "[", 1);
  w->depth++;
  if (one_line && w->row_depth == UINT32_MAX) w->row_depth = w->depth;
  w->has_items &= ~level_bit(w);
  w->is_object &= ~level_bit(w);
  if (object) w->is_object |= level_bit(w);
}

static void end(weir_json_writer *w, bool object) {
  if (w->depth == 0 || w->after_key) w->failed = true;
  if (w->failed || ((w->is_object & level_bit(w)) != 0) != object) {
    w->failed = true;
    return;
  }
  bool empty = (w->has_items & level_bit(w)) == 0;
  bool one_line = on_one_line(w);
  if (w->depth == w->row_depth) w->row_depth = UINT32_MAX;
  w->depth--;
  if (!empty && !one_line) new_line(w);
  put(w, object ? "}" : "]", 1);
}

void weir_json_object_begin(weir_json_writer *w, bool one_line) {
  begin(w, true, one_line);
}

void weir_json_object_end(weir_json_writer *w) {
  end(w, true);
}

void weir_json_array_begin(weir_json_writer *w, bool one_line) {
  begin(w, false, one_line);
}

void weir_json_array_end(weir_json_writer *w) {
  end(w, false);
}

/* The two-character escape of |c|, or NULL. */
static const char *short_escape(unsigned char c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return NULL;
  }
}

static void put_escaped(weir_json_writer *w, unsigned char c) {
  const char *escape = short_escape(c);
  char text[8];
  if (escape == NULL) {
    snprintf(text, sizeof text, "\\u%04x", c);
    escape = text;
  }
  put_text(w, escape);
}

/* ASCII that stands for itself. */
static bool is_plain(unsigned char c) {
  return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void put_string(weir_json_writer *w, weir_sv text) {
  size_t from = 0, at = 0; /* from..at needs no escape */
  put(w, "\"", 1);
  while (at < text.size) {
    unsigned char c = (unsigned char)text.data[at];
    uint32_t point;
    if (is_plain(c)) {
      at++;
      continue;
    }
    weir_sv rest = {text.data + at, text.size - at};
    size_t n = weir_utf8_decode(rest, &point);
    if (n > 1) {
      at += n;
      continue;
    }
    put(w, text.data + from, at - from);
    if (n == 0)
      put_text(w, "\xef\xbf\xbd"); /* U+FFFD */
    else
      put_escaped(w, c);
    from = ++at;
  }
  if (at > from) put(w, text.data + from, at - from); /* not NULL + 0 */
  put(w, "\"", 1);
}

void weir_json_key_sv(weir_json_writer *w, weir_sv key) {
  if (w->depth == 0 || (w->is_object & level_bit(w)) == 0 || w->after_key)
    w->failed = true;
  if (w->failed) return;
  separate(w);
  put_string(w, key);
  put(w, ": ", w->indent > 0 ? 2 : 1);
  w->after_key = true;
}

void weir_json_key(weir_json_writer *w, const char *key) {
  weir_json_key_sv(w, weir_sv_from(key));
}

void weir_json_string(weir_json_writer *w, weir_sv text) {
  begin_value(w);
  put_string(w, text);
}

static void put_digits(weir_json_writer *w, bool negative, uint64_t value) {
  char text[24], *at = text + sizeof text;
  do {
    *--at = (char)('0' + value % 10);
    value /= 10;
  } while (value != 0);
  if (negative) *--at = '-';
  begin_value(w);
  put(w, at, (size_t)(text + sizeof text - at));
}

void weir_json_int(weir_json_writer *w, int64_t value) {
  uint64_t bits = (uint64_t)value;
  put_digits(w, value < 0, value < 0 ? 0 - bits : bits);
}

void weir_json_uint(weir_json_writer *w, uint64_t value) {
  put_digits(w, false, value);
}

void weir_json_bool(weir_json_writer *w, bool value) {
  begin_value(w);
  put_text(w, value ? "true" : "false");
}

void weir_json_null(weir_json_writer *w) {
  begin_value(w);
  put_text(w, "null");
}

static void put_number(weir_json_writer *w, bool finite, const char *text,
                       size_t size) {
  begin_value(w);
  if (!finite) put(w, "\"", 1);
  put(w, text, size);
  if (!finite) put(w, "\"", 1);
}

void weir_json_double(weir_json_writer *w, double value) {
  char text[WEIR_NUMBER_TEXT];
  put_number(w, isfinite(value), text, weir_number_format(text, value));
}

void weir_json_float(weir_json_writer *w, float value) {
  char text[WEIR_NUMBER_TEXT];
  put_number(w, isfinite(value), text, weir_number_format_float(text, value));
}

void weir_json_key_int(weir_json_writer *w, const char *key, int64_t value) {
  weir_json_key(w, key);
  weir_json_int(w, value);
}

void weir_json_key_uint(weir_json_writer *w, const char *key, uint64_t value) {
  weir_json_key(w, key);
  weir_json_uint(w, value);
}

void weir_json_key_double(weir_json_writer *w, const char *key, double value) {
  weir_json_key(w, key);
  weir_json_double(w, value);
}

void weir_json_key_bool(weir_json_writer *w, const char *key, bool value) {
  weir_json_key(w, key);
  weir_json_bool(w, value);
}

void weir_json_key_text(weir_json_writer *w, const char *key, weir_sv text) {
  weir_json_key(w, key);
  weir_json_string(w, text);
}

bool weir_json_finish(weir_json_writer *w) {
  if (w->depth != 0) w->failed = true;
  put(w, "\n", 1);
  flush(w);
  return !w->failed;
}
