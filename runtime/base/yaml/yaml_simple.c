/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/yaml/yaml_simple.h"

#include "runtime/base/yaml/yaml_build.h"
#include "runtime/base/yaml/yaml_error.h"
#include "runtime/base/yaml/yaml_tree.h"

/* A reader for the form that large graph files have: block maps of one-line
 * values, in ASCII.
 *
 *   # comment
 *   key: plain text        # nested calls, types, numbers
 *   key:
 *     key: [word, 1.5]     # a list of plain words
 *   key:
 *     - plain text         # or one item a line, further in than its key
 *
 * It is a subset of YAML in which every line is read by itself; anything else
 * in a text sends all of it to libyaml: quotes, tabs, CR, lists of maps, maps
 * in braces, anchors, tags, values on several lines, an indentation that does
 * not fit. weir_yaml_is_simple looks first, so nothing is built in vain. The
 * tree and its marks are those that libyaml's events give; the fuzz target
 * compares the two. */

enum { kMostDepth = 64, kMostKeyBytes = 1000, kLookEvery = 256 };

/* One line that is neither empty nor a comment. */
typedef struct simple_line {
  uint32_t number; /* from 1 */
  size_t indent;
  weir_sv key;
  weir_sv value; /* size 0: none; from [ to ] when |list| */
  bool list;
  bool item;         /* "- value": no key */
  const char *start; /* of the line */
  const char *colon; /* behind it */
} simple_line;

typedef struct simple_scan {
  const char *at, *end;
  uint32_t number;
} simple_scan;

typedef enum scan_result { kLine, kEnd, kNotSimple } scan_result;

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         c == '_';
}

static bool is_printable(char c) {
  return c >= 0x20 && c <= 0x7e;
}

/* True for characters that surely start plain text: a word, or a signed number.
 */
static bool starts_plain(const char *p, const char *end) {
  if (is_word(*p)) return true;
  return (*p == '-' || *p == '+' || *p == '.') && p + 1 < end && is_digit(p[1]);
}

static const char *skip_spaces(const char *p, const char *end) {
  while (p < end && *p == ' ') p++;
  return p;
}

static const char *trim(const char *start, const char *end) {
  while (end > start && end[-1] == ' ') end--;
  return end;
}

static bool all_printable(const char *p, const char *end) {
  while (p < end && is_printable(*p)) p++;
  return p == end;
}

/* Nothing, or a comment. */
static bool is_rest(const char *p, const char *end) {
  const char *text = skip_spaces(p, end);
  if (text == end) return true;
  return *text == '#' && (text > p || p[-1] == ' ') && all_printable(text, end);
}

/* Plain text from |p|, to a comment or |end|. */
static bool scan_plain(simple_line *line, const char *p, const char *end) {
  const char *q = p;
  for (; q < end; q++) {
    if (!is_printable(*q)) return false;
    if (*q == ':' && (q + 1 == end || q[1] == ' ')) return false;
    if (*q == '#' && q[-1] == ' ') break;
  }
  if (!all_printable(q, end)) return false;
  line->value = (weir_sv){p, (size_t)(trim(p, q) - p)};
  return true;
}

/* The end of the list item at |p|, or NULL. */
static const char *scan_item(const char *p, const char *end) {
  if (p == end || !starts_plain(p, end)) return NULL;
  for (p++; p < end && (is_word(*p) || memchr("./+-", *p, 4) != NULL);) p++;
  return p;
}

/* [item, item] from |p|; only a comment may follow it. */
static bool scan_list(simple_line *line, const char *p, const char *end) {
  const char *q = skip_spaces(p + 1, end);
  line->list = true;
  while (q < end && *q != ']') {
    q = scan_item(q, end);
    if (q == NULL) return false;
    q = skip_spaces(q, end);
    if (q == end || (*q != ',' && *q != ']')) return false;
    if (*q == ']') break;
    q = skip_spaces(q + 1, end);
    if (q == end || *q == ']') return false;
  }
  if (q == end || !is_rest(q + 1, end)) return false;
  line->value = (weir_sv){p, (size_t)(q + 1 - p)};
  return true;
}

/* The end of the key at |p|: a colon before a space or the end. */
static const char *scan_key(const char *p, const char *end) {
  if (!is_word(*p)) return NULL;
  for (const char *q = p; q < end; q++) {
    if (!is_printable(*q) || (*q == '#' && q[-1] == ' ')) return NULL;
    if (*q == ':' && (q + 1 == end || q[1] == ' '))
      return q - p <= kMostKeyBytes ? q : NULL;
  }
  return NULL;
}

/* The value behind "- ". */
static bool scan_dash(simple_line *line, const char *p, const char *end) {
  line->key = (weir_sv){p, 1};
  line->item = true;
  p = skip_spaces(p + 1, end);
  return p < end && starts_plain(p, end) && scan_plain(line, p, end);
}

static bool scan_content(simple_line *line, const char *p, const char *end) {
  line->item = line->list = false;
  if (*p == '-' && p + 1 < end && p[1] == ' ') return scan_dash(line, p, end);
  const char *colon = scan_key(p, end);
  if (colon == NULL) return false;
  line->key = (weir_sv){p, (size_t)(trim(p, colon) - p)};
  line->colon = colon + 1;
  line->value = (weir_sv){colon + 1, 0};
  if (is_rest(colon + 1, end)) return true;
  p = skip_spaces(colon + 1, end);
  if (*p == '[') return scan_list(line, p, end);
  return starts_plain(p, end) && scan_plain(line, p, end);
}

/* The next line that holds something. */
static scan_result next_line(simple_scan *scan, simple_line *line) {
  while (scan->at < scan->end) {
    const char *start = scan->at;
    const char *end = memchr(start, '\n', (size_t)(scan->end - start));
    scan->at = end != NULL ? end + 1 : scan->end;
    if (end == NULL) end = scan->end;
    const char *p = skip_spaces(start, end);
    scan->number++;
    if (p == end) continue;
    if (*p == '#') {
      if (!all_printable(p, end)) return kNotSimple;
      continue;
    }
    line->number = scan->number;
    line->indent = (size_t)(p - start);
    line->start = start;
    return scan_content(line, p, end) ? kLine : kNotSimple;
  }
  return kEnd;
}

/* --- looking --- */

typedef struct indents {
  size_t of[kMostDepth];
  bool list[kMostDepth];
  size_t count;
} indents;

/* Ends the maps and lists that |line| stands left of, or starts one that
 * |takes| allows. False when the indentation fits none. */
static bool fit_indent(indents *open, const simple_line *line, bool takes) {
  size_t indent = line->indent;
  if (open->count == 0 || indent > open->of[open->count - 1]) {
    if (!takes || open->count == kMostDepth) return false;
    if (open->count == 0 && line->item) return false;
    open->list[open->count] = line->item;
    open->of[open->count++] = indent;
    return true;
  }
  while (indent < open->of[open->count - 1]) open->count--;
  return indent == open->of[open->count - 1] &&
         line->item == open->list[open->count - 1];
}

bool weir_yaml_is_simple(weir_sv text, const weir_allocator *alloc) {
  simple_scan scan = {text.data, text.data + text.size, 0};
  simple_line line;
  indents open = {.count = 0};
  bool takes = true;
  scan_result result;
  for (size_t n = 0; (result = next_line(&scan, &line)) == kLine; n++) {
    if (n % kLookEvery == 0 && weir_alloc_over(alloc)) return false;
    if (open.count == 0 && line.indent != 0) return false;
    if (!fit_indent(&open, &line, takes)) return false;
    takes = line.value.size == 0;
  }
  return result == kEnd && open.count > 0;
}

/* --- building --- */

static weir_mark span(const weir_yaml_builder *b, const simple_line *line,
                      const char *from, size_t size) {
  uint32_t col = (uint32_t)(from - line->start) + 1;
  return (weir_mark){b->file, line->number, col, line->number,
                     col + (uint32_t)size};
}

static bool add_text(weir_yaml_builder *b, const simple_line *line,
                     const char *from, size_t size) {
  return weir_yaml_add_scalar(b, (weir_sv){from, size},
                              span(b, line, from, size), true, WEIR_MAP_NONE);
}

static bool add_list(weir_yaml_builder *b, const simple_line *line) {
  const char *p = line->value.data, *end = p + line->value.size - 1;
  weir_mark mark = span(b, line, p, line->value.size);
  if (!weir_yaml_open(b, WEIR_YAML_LIST, mark, false, WEIR_MAP_NONE))
    return false;
  for (p = skip_spaces(p + 1, end); p < end;) {
    const char *item_end = scan_item(p, end);
    if (!add_text(b, line, p, (size_t)(item_end - p))) return false;
    p = skip_spaces(item_end, end);
    if (p < end) p = skip_spaces(p + 1, end); /* the comma */
  }
  return weir_yaml_close(b, &mark);
}

/* Brings the open maps to where |line| stands; |before| is the line above it,
 * whose value may still be missing. */
static bool move_to(weir_yaml_builder *b, indents *open,
                    const simple_line *before, const simple_line *line) {
  size_t depth = open->count;
  bool missing = before != NULL && before->value.size == 0;
  bool deeper = depth == 0 || line->indent > open->of[depth - 1];
  if (missing && !deeper && !add_text(b, before, before->colon, 0))
    return false;
  (void)fit_indent(open, line, true);
  weir_mark mark = span(b, line, line->key.data, line->key.size);
  if (deeper)
    return weir_yaml_open(b, line->item ? WEIR_YAML_LIST : WEIR_YAML_MAP, mark,
                          true, WEIR_MAP_NONE);
  for (; depth > open->count; depth--)
    if (!weir_yaml_close(b, &mark)) return false;
  return true;
}

static bool add_line(weir_yaml_builder *b, const simple_line *line) {
  if (!line->item && !add_text(b, line, line->key.data, line->key.size))
    return false;
  if (line->value.size == 0) return true;
  if (line->list) return add_list(b, line);
  return add_text(b, line, line->value.data, line->value.size);
}

bool weir_yaml_read_simple(weir_yaml_builder *b) {
  const char *copy = b->text.data;
  if (!b->lent) copy = weir_arena_string(b->texts, copy, b->text.size);
  if (copy == NULL) return weir_yaml_no_memory(b, b->text.size);
  simple_scan scan = {copy, copy + b->text.size, 0};
  simple_line line, before;
  indents open = {.count = 0};
  bool first = true;
  while (next_line(&scan, &line) == kLine) {
    if (!move_to(b, &open, first ? NULL : &before, &line)) return false;
    if (!add_line(b, &line)) return false;
    before = line;
    first = false;
  }
  if (line.value.size == 0 && !add_text(b, &line, line.colon, 0)) return false;
  weir_mark end = span(b, &line, line.colon, 0);
  while (b->frames.count > 0)
    if (!weir_yaml_close(b, &end)) return false;
  return true;
}
