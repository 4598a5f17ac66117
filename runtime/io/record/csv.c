/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/record/csv.h"

#include <assert.h>

#include "runtime/base/size.h"
#include "runtime/base/vec.h"

/* Records of CSV, one at a time (RFC 4180, with any delimiter and quote).
 *
 * A record is scanned in the stream's window and its fields point into it; only
 * fields with doubled quotes are copied. If the window ends first, it is made
 * longer and the record scanned again from its start: a scanner that could stop
 * anywhere would need a state for each place. Windows double, so the repeated
 * scans of a long record add up to about its own length. */

enum { kMaxFields = 1 << 20, kScratchBytes = 65536 };

/* A record that is being read from bytes that may not hold all of it. */
typedef struct scan {
  weir_csv_reader *r;
  const char *text;
  size_t size, at;
  bool all;      /* nothing follows |text| */
  bool starved;  /* the record goes on after |text| */
  bool has_pair; /* the field just read has doubled quotes */
  size_t start, end;
  const char *wrong; /* the record's fault; static */
  size_t wrong_at;
} scan;

void weir_csv_reader_release(weir_csv_reader *r) {
  weir_free(r->alloc, r->fields);
  weir_free(r->alloc, r->scratch);
  r->fields = NULL;
  r->scratch = NULL;
  r->count = r->capacity = 0;
  r->scratch_bytes = 0;
}

static bool fail(scan *s, const char *wrong, size_t at) {
  s->wrong = wrong;
  s->wrong_at = at;
  return false;
}

/* False, with |starved| or |wrong|, when the field is not whole. */
static bool quoted_field(scan *s) {
  char quote = s->r->format.quote;
  s->start = ++s->at;
  s->has_pair = false;
  for (;;) {
    const char *q = s->at < s->size
                        ? memchr(s->text + s->at, quote, s->size - s->at)
                        : NULL;
    if (q == NULL) {
      s->starved = !s->all;
      return fail(s, "a quoted field does not end", s->start);
    }
    s->end = (size_t)(q - s->text);
    s->at = s->end + 1;
    if (s->at == s->size && !s->all) return !(s->starved = true);
    if (s->at == s->size || s->text[s->at] != quote) return true;
    s->has_pair = true;
    s->at++;
  }
}

static bool plain_field(scan *s) {
  char delimiter = s->r->format.delimiter, quote = s->r->format.quote;
  s->has_pair = false;
  s->start = s->at;
  for (; s->at < s->size; s->at++) {
    char c = s->text[s->at];
    if (c == delimiter || c == '\n') break;
    if (quote != '\0' && c == quote)
      return fail(s, "a quote inside a field that does not start with one",
                  s->at);
  }
  if (s->at == s->size && !s->all) return !(s->starved = true);
  s->end = s->at;
  bool line_end = s->at == s->size || s->text[s->at] == '\n';
  if (line_end && s->end > s->start && s->text[s->end - 1] == '\r') s->end--;
  return true;
}

/* Copies the field into the scratch with each pair of quotes as one. */
static weir_sv without_pairs(scan *s, size_t *used) {
  char *to = s->r->scratch + *used;
  size_t n = 0;
  for (size_t i = s->start; i < s->end; i++) {
    to[n++] = s->text[i];
    if (s->text[i] == s->r->format.quote) i++;
  }
  *used += n;
  return (weir_sv){to, n};
}

static weir_status add_field(scan *s, size_t *used, weir_error *err) {
  weir_csv_reader *r = s->r;
  if (r->count == r->capacity) {
    size_t capacity = r->capacity;
    if (!weir_vec_grow(r->alloc, (void **)&r->fields, &capacity, r->count, 1,
                       sizeof *r->fields))
      return weir_fail_memory(err, sizeof *r->fields);
    r->capacity = (uint32_t)capacity;
  }
  weir_sv field = {s->text + s->start, s->end - s->start};
  if (s->has_pair) field = without_pairs(s, used);
  r->fields[r->count++] = field;
  return WEIR_OK;
}

/* The scratch never moves while fields point into it: a record's fields are
 * together no longer than the record. */
static weir_status need_scratch(weir_csv_reader *r, size_t bytes,
                                weir_error *err) {
  if (r->scratch_bytes >= bytes) return WEIR_OK;
  size_t most = kScratchBytes;
  while (most < bytes) most *= 2; /* a window's size: bounded */
  bytes = most;
  char *scratch = weir_alloc(r->alloc, bytes);
  if (scratch == NULL) return weir_fail_memory(err, bytes);
  weir_free(r->alloc, r->scratch);
  r->scratch = scratch;
  r->scratch_bytes = bytes;
  return WEIR_OK;
}

/* Moves past the end of a field. False when the record goes on. */
static bool ends_record(scan *s) {
  if (s->at < s->size && s->text[s->at] == '\r' &&
      (s->at + 1 < s->size ? s->text[s->at + 1] == '\n' : s->all))
    s->at++;
  if (s->at == s->size) return true;
  char c = s->text[s->at++];
  if (c == '\n') return true;
  if (c != s->r->format.delimiter)
    return fail(s, "text follows a closing quote", s->at);
  return false;
}

static weir_status scan_record(scan *s, weir_error *err) {
  size_t used = 0;
  bool done = false;
  s->r->count = 0;
  while (!done && !s->starved && s->wrong == NULL) {
    char quote = s->r->format.quote;
    bool quoted = quote != '\0' && s->at < s->size && s->text[s->at] == quote;
    if (quoted) WEIR_TRY(need_scratch(s->r, s->size, err));
    if (quoted ? !quoted_field(s) : !plain_field(s)) break;
    /* "a"\r with more to come: the next byte decides. */
    if (s->at + 1 == s->size && s->text[s->at] == '\r' && !s->all) {
      s->starved = true;
      break;
    }
    if (s->r->count == kMaxFields) {
      (void)fail(s, "more than 1,048,576 fields", s->at);
    } else {
      WEIR_TRY(add_field(s, &used, err));
      done = ends_record(s);
    }
  }
  return WEIR_OK;
}

static uint64_t lines_in(const char *text, size_t size) {
  uint64_t n = 0;
  const char *end = text + size;
  while (text < end) {
    text = memchr(text, '\n', (size_t)(end - text));
    if (text == NULL) break;
    text++;
    n++;
  }
  return n;
}

/* Passes over a byte order mark and empty lines. */
static weir_status skip_empty(weir_stream *stream, uint64_t *line,
                              weir_error *err) {
  weir_bytes b;
  if (weir_stream_at(stream) == 0) {
    WEIR_TRY(weir_stream_peek(stream, 3, &b, err));
    if (b.size >= 3 && memcmp(b.data, "\xef\xbb\xbf", 3) == 0)
      weir_stream_skip(stream, 3);
  }
  for (;;) {
    WEIR_TRY(weir_stream_peek(stream, 2, &b, err));
    size_t n = b.size >= 1 && b.data[0] == '\n' ? 1 : 0;
    if (b.size >= 2 && b.data[0] == '\r' && b.data[1] == '\n') n = 2;
    if (n == 0) return WEIR_OK;
    weir_stream_skip(stream, n);
    ++*line;
  }
}

weir_status weir_csv_next(weir_csv_reader *r, weir_stream *stream,
                          const char *file, uint64_t *line, weir_error *err) {
  weir_bytes b;
  r->count = 0;
  WEIR_TRY(skip_empty(stream, line, err));
  WEIR_TRY(weir_stream_peek(stream, 1, &b, err));
  if (b.size == 0) return WEIR_OK;
  scan s = {.r = r, .text = (const char *)b.data, .size = b.size};
  WEIR_TRY(scan_record(&s, err));
  while (s.starved) {
    size_t had = s.size;
    WEIR_TRY(weir_stream_peek(stream, had + 1, &b, err));
    s = (scan){.r = r,
               .text = (const char *)b.data,
               .size = b.size,
               .all = b.size == had};
    WEIR_TRY(scan_record(&s, err));
  }
  if (s.wrong != NULL) {
    uint64_t bad = *line + lines_in(s.text, s.wrong_at);
    weir_mark at = {.file = file, .line = (uint32_t)bad, .col = 1};
    return weir_fail(err, WEIR_W4026, &at, "%s", s.wrong);
  }
  assert(s.at <= s.size);
  *line += lines_in(s.text, s.at);
  weir_stream_skip(stream, s.at);
  return WEIR_OK;
}
