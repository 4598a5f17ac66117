/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/yaml/yaml_error.h"

#include <stdarg.h>
#include <stdio.h>

#include "runtime/base/utf8.h"
#include "runtime/base/yaml/yaml_build.h"

/* libyaml reports where its grammar stopped, in its own words; a reader needs
 * the cause. Its words and the byte at their place identify the most common
 * findings; the rest is passed on. Places are found by walking
 * the text again, once, for the error. */

enum { kMostErrors = 100, kMostDirectives = 16, kMessageBytes = 512 };

weir_mark weir_yaml_span(const weir_yaml_builder *b, const yaml_mark_t *start,
                         const yaml_mark_t *end) {
  return (weir_mark){
      .file = b->file,
      .line = (uint32_t)start->line + 1,
      .col = (uint32_t)start->column + 1,
      .end_line = (uint32_t)end->line + 1,
      .end_col = (uint32_t)end->column + 1,
  };
}

/* Hands a filled error to the caller's weir_error and to the sink. */
static bool deliver(weir_yaml_builder *b, const weir_error *error,
                    const weir_yaml_label *other) {
  if (b->error_count++ == 0) {
    b->status = error->code;
    weir_error_copy(b->err, error);
  }
  if (b->sink != NULL) {
    weir_diag diag;
    weir_diag_init(&diag, error);
    if (other != NULL) weir_diag_add_label(&diag, other->at, "%s", other->text);
    b->sink->report(b->sink->self, &diag);
  }
  return b->error_count < kMostErrors;
}

bool weir_yaml_report(weir_yaml_builder *b, weir_error_id id,
                      const weir_mark *at, const weir_yaml_label *other,
                      const char *fmt, ...) {
  weir_error error = WEIR_ERROR_INIT;
  char message[kMessageBytes];
  va_list args;
  va_start(args, fmt);
  vsnprintf(message, sizeof message, fmt, args);
  va_end(args);
  (void)weir_fail(&error, id, at, "%s", message);
  return deliver(b, &error, other);
}

bool weir_yaml_stop(weir_yaml_builder *b, weir_error_id id, const weir_mark *at,
                    const weir_yaml_label *other, const char *fmt, ...) {
  weir_error error = WEIR_ERROR_INIT;
  char message[kMessageBytes];
  va_list args;
  va_start(args, fmt);
  vsnprintf(message, sizeof message, fmt, args);
  va_end(args);
  (void)weir_fail(&error, id, at, "%s", message);
  (void)deliver(b, &error, other);
  return false;
}

bool weir_yaml_no_memory(weir_yaml_builder *b, size_t bytes) {
  weir_error error = WEIR_ERROR_INIT;
  (void)weir_fail_memory(&error, bytes);
  (void)deliver(b, &error, NULL);
  return false;
}

bool weir_yaml_in_time(weir_yaml_builder *b) {
  weir_error error = WEIR_ERROR_INIT;
  if (weir_alloc_check(b->alloc, &error) == WEIR_OK) return true;
  (void)deliver(b, &error, NULL);
  return false;
}

/* --- libyaml's findings --- */

/* The place of byte |offset| of the text. */
static weir_mark mark_of_offset(const weir_yaml_builder *b, size_t offset) {
  weir_mark mark = {b->file, 1, 1, 1, 1};
  size_t at = 0;
  while (at < offset && at < b->text.size) {
    weir_sv rest = {b->text.data + at, b->text.size - at};
    size_t end = weir_utf8_line_break(rest);
    uint32_t point;
    size_t n = end > 0 ? end : weir_utf8_decode(rest, &point);
    at += n > 0 ? n : 1;
    mark.line += end > 0;
    mark.col = end > 0 ? 1 : mark.col + 1;
  }
  mark.end_line = mark.line;
  mark.end_col = mark.col + 1;
  return mark;
}

/* The byte that stands at libyaml's |mark|, or NUL. */
static char byte_at(const weir_yaml_builder *b, const yaml_mark_t *mark) {
  size_t at = 0;
  for (size_t i = 0; i < mark->index && at < b->text.size; i++) {
    uint32_t point;
    weir_sv rest = {b->text.data + at, b->text.size - at};
    size_t n = weir_utf8_decode(rest, &point);
    at += n > 0 ? n : 1;
  }
  return at < b->text.size ? b->text.data[at] : '\0';
}

/* Hints for those of libyaml's findings that graph files meet most. */
static const char *hint_for(const char *problem) {
  static const char *const kHints[][2] = {
      {"mapping values are not allowed",
       "a value that holds \": \" needs quotes; or the indentation is off"},
      {"could not find expected ':'", "each line of a map is `name: value`"},
      {"did not find expected ',' or",
       "inside [ ] and { } quote text that holds , [ ] { }"},
      {"did not find expected key",
       "the lines of one map start in the same column"},
      {"did not find expected '-' indicator",
       "the items of one list start in the same column"},
  };
  for (size_t i = 0; i < sizeof kHints / sizeof kHints[0]; i++)
    if (strstr(problem, kHints[i][0]) != NULL) return kHints[i][1];
  return NULL;
}

/* The bracket or quote that the end of the text leaves open: it is where the
 * reader has to look, not the end. */
static bool describe_unclosed(const weir_yaml_builder *b,
                              const yaml_parser_t *parser, weir_error *error) {
  char open = byte_at(b, &parser->context_mark);
  if (parser->context == NULL || byte_at(b, &parser->problem_mark) != '\0' ||
      memchr("[{\"'", open, 4) == NULL)
    return false;
  weir_mark mark =
      weir_yaml_span(b, &parser->context_mark, &parser->context_mark);
  mark.end_col++;
  (void)weir_fail(error, WEIR_W1001, &mark,
                  "%c is not closed before the end of the file", open);
  return true;
}

/* Fills |error| for a scanner's or parser's finding. */
static void describe(const weir_yaml_builder *b, const yaml_parser_t *parser,
                     weir_error *error) {
  const char *problem = parser->problem != NULL ? parser->problem : "not YAML";
  const yaml_mark_t *at = &parser->problem_mark;
  weir_mark mark = weir_yaml_span(b, at, at);
  char found = byte_at(b, at);
  mark.end_col++;
  if (describe_unclosed(b, parser, error)) return;
  if (strstr(problem, "tag handle") != NULL) {
    (void)weir_fail(error, WEIR_W1005, &mark, "%s", problem);
  } else if (found == '\t' || strstr(problem, "tab character") != NULL) {
    (void)weir_fail(error, WEIR_W1001, &mark,
                    "a tab cannot indent, found one before the text");
    weir_hint(error, "indent with spaces");
  } else if (strstr(problem, "cannot start any token") != NULL) {
    (void)weir_fail(error, WEIR_W1001, &mark,
                    "a value without quotes cannot start with '%c'", found);
    weir_hint(error, "put the value in quotes");
  } else {
    (void)weir_fail(error, WEIR_W1001, &mark, "%s", problem);
    if (hint_for(problem) != NULL) weir_hint(error, "%s", hint_for(problem));
  }
}

bool weir_yaml_parser_failed(weir_yaml_builder *b,
                             const yaml_parser_t *parser) {
  weir_error error = WEIR_ERROR_INIT;
  if (b->status == WEIR_DEADLINE_EXCEEDED) return false; /* in read_piece */
  if (parser->error == YAML_MEMORY_ERROR) return weir_yaml_no_memory(b, 0);
  if (parser->error == YAML_READER_ERROR) {
    weir_mark at = mark_of_offset(b, parser->problem_offset);
    return weir_yaml_stop(
        b, WEIR_W1001, &at, NULL, "byte %zu is the control character U+%04X",
        parser->problem_offset + b->bom_bytes, (unsigned)parser->problem_value);
  }
  describe(b, parser, &error);
  weir_mark context =
      weir_yaml_span(b, &parser->context_mark, &parser->context_mark);
  context.end_col++;
  bool shown = parser->context != NULL &&
               (context.line != error.line || context.col != error.col);
  weir_yaml_label other = {&context, parser->context};
  (void)deliver(b, &error, shown ? &other : NULL);
  return false;
}

/* --- before libyaml sees the text --- */

static bool looks_like_utf16(weir_sv text) {
  if (weir_sv_starts_with(text, "\xff\xfe")) return true;
  if (weir_sv_starts_with(text, "\xfe\xff")) return true;
  return text.size >= 2 && (text.data[0] == '\0') != (text.data[1] == '\0');
}

static bool refuse_bytes(weir_yaml_builder *b, size_t offset,
                         const char *what) {
  weir_mark at = mark_of_offset(b, offset);
  bool wide = looks_like_utf16(b->text);
  return weir_yaml_stop(b, WEIR_W1002, &at, NULL, "byte %zu %s%s",
                        offset + b->bom_bytes, what,
                        wide ? "; the file looks like UTF-16" : "");
}

/* libyaml compares each %TAG with all before it; a graph file needs none. */
static bool too_many_directives(weir_sv text) {
  size_t found = 0;
  const char *at = text.data, *end = text.data + text.size;
  while (found <= kMostDirectives && at < end) {
    found += *at == '%';
    at = memchr(at, '\n', (size_t)(end - at));
    at = at != NULL ? at + 1 : end;
  }
  return found > kMostDirectives;
}

bool weir_yaml_check_text(weir_yaml_builder *b) {
  weir_mark start = {b->file, 1, 1, 1, 2};
  if (b->text.size > b->limits.bytes)
    return weir_yaml_stop(b, WEIR_W1013, &start, NULL,
                          "the file has %zu bytes, %zu are allowed",
                          b->text.size, b->limits.bytes);
  if (b->text.data == NULL) b->text = WEIR_SV_LIT("");
  if (weir_sv_starts_with(b->text, "\xef\xbb\xbf")) {
    b->bom_bytes = 3;
    b->text = (weir_sv){b->text.data + 3, b->text.size - 3};
  }
  const char *nul = memchr(b->text.data, '\0', b->text.size);
  size_t bad, checked = nul ? (size_t)(nul - b->text.data) : b->text.size;
  if (!weir_utf8_valid((weir_sv){b->text.data, checked}, &bad))
    return refuse_bytes(b, bad, "is not UTF-8");
  if (nul != NULL) return refuse_bytes(b, checked, "is NUL");
  if (too_many_directives(b->text))
    return weir_yaml_stop(b, WEIR_W1001, &start, NULL,
                          "more than %d lines start with '%%'",
                          (int)kMostDirectives);
  return true;
}
