/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/record/token.h"

#include "runtime/base/utf8.h"

enum { kMostBytes = 4 /* of a code point */ };

static bool is_blank(uint8_t c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

static weir_status not_utf8(const weir_token_text *t, size_t offset,
                            weir_error *err) {
  weir_mark at = {.file = t->file, .line = (uint32_t)*t->line, .col = 1};
  return weir_fail(err, WEIR_W4030, &at, "not UTF-8, at byte %llu of the file",
                   (unsigned long long)(weir_stream_at(t->stream) + offset));
}

static weir_status skip_mark(weir_stream *stream, weir_error *err) {
  weir_bytes b;
  if (weir_stream_at(stream) != 0) return WEIR_OK;
  WEIR_TRY(weir_stream_peek(stream, 3, &b, err));
  if (b.size >= 3 && memcmp(b.data, "\xef\xbb\xbf", 3) == 0)
    weir_stream_skip(stream, 3);
  return WEIR_OK;
}

static weir_status next_char(const weir_token_text *t, weir_sv *out,
                             bool *out_end, weir_error *err) {
  weir_bytes b;
  uint32_t point = 0;
  WEIR_TRY(weir_stream_peek(t->stream, kMostBytes, &b, err));
  *out_end = b.size == 0;
  if (*out_end) return WEIR_OK;
  size_t n =
      b.data[0] < 0x80
          ? 1
          : weir_utf8_decode((weir_sv){(const char *)b.data, b.size}, &point);
  if (n == 0) return not_utf8(t, 0, err);
  if (b.data[0] == '\n') ++*t->line;
  *out = (weir_sv){(const char *)b.data, n};
  weir_stream_skip(t->stream, n);
  return WEIR_OK;
}

/* Passes over blanks; with |line_ends| up to the first line end, and past it,
 * which sets |*out_line_end|. */
static weir_status skip_blanks(const weir_token_text *t, bool *out_line_end,
                               bool *out_end, weir_error *err) {
  weir_bytes b;
  *out_line_end = false;
  for (;;) {
    WEIR_TRY(weir_stream_peek(t->stream, 1, &b, err));
    *out_end = b.size == 0;
    if (*out_end) return WEIR_OK;
    size_t n = 0;
    while (n < b.size && is_blank(b.data[n]) && !*out_line_end) {
      bool line_end = b.data[n++] == '\n';
      *t->line += line_end;
      *out_line_end = line_end && t->format->line_ends;
    }
    bool stopped = n < b.size || *out_line_end;
    weir_stream_skip(t->stream, n);
    if (stopped) return WEIR_OK;
  }
}

static weir_status next_word(const weir_token_text *t, weir_sv *out,
                             bool *out_end, weir_error *err) {
  weir_bytes b;
  bool line_end = false;
  *out = (weir_sv){"", 0};
  WEIR_TRY(skip_blanks(t, &line_end, out_end, err));
  if (*out_end || line_end) return WEIR_OK;
  WEIR_TRY(weir_stream_peek(t->stream, 1, &b, err));
  size_t n = 0;
  for (bool more = true; more;) {
    while (n < b.size && !is_blank(b.data[n])) n++;
    if (n < b.size) break;
    WEIR_TRY(weir_stream_peek(t->stream, n + 1, &b, err));
    more = b.size > n;
  }
  size_t bad = 0;
  *out = (weir_sv){(const char *)b.data, n};
  if (!weir_utf8_valid(*out, &bad)) return not_utf8(t, bad, err);
  weir_stream_skip(t->stream, n);
  return WEIR_OK;
}

weir_status weir_token_next(const weir_token_text *text, weir_sv *out_token,
                            bool *out_end, weir_error *err) {
  WEIR_TRY(skip_mark(text->stream, err));
  return text->format->words ? next_word(text, out_token, out_end, err)
                             : next_char(text, out_token, out_end, err);
}
