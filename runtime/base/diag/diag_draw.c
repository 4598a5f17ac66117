/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/diag/diag_draw.h"

#include "runtime/base/diag/diag_out.h"
#include "runtime/base/utf8.h"

/* Source lines are shown in cells of a terminal: a tab reaches to the next
 * multiple of four, wide characters take two. Lines wider than the window are
 * cut around the underlined part. No memory is allocated: a line is walked
 * again for each question about it. */

enum { kTab = 4, kWindow = 100, kBefore = 20, kDots = 3 };

typedef struct span {
  weir_mark at;
  const char *text;
  bool primary;
  size_t file_rank; /* index of the first span in the same file */
} span;

/* --- one line in cells --- */

/* A walk over a line's code points. */
typedef struct cells {
  weir_sv rest;
  size_t from, to; /* of the current code point */
  weir_sv bytes;   /* the current code point, as it is shown */
} cells;

static bool cells_next(cells *c) {
  uint32_t point = 0;
  if (c->rest.size == 0) return false;
  size_t n = weir_utf8_decode(c->rest, &point);
  c->from = c->to;
  c->bytes = (weir_sv){c->rest.data, n};
  if (point == '\t') {
    c->bytes = WEIR_SV_LIT("    ");
    c->bytes.size = kTab - c->from % kTab;
    c->to += c->bytes.size;
  } else if (n == 0 || weir_utf8_unsafe(point)) {
    c->bytes = WEIR_SV_LIT("\xef\xbf\xbd"); /* U+FFFD */
    c->to += 1;
  } else {
    c->to += (size_t)weir_utf8_width(point);
  }
  n = n > 0 ? n : 1;
  c->rest = (weir_sv){c->rest.data + n, c->rest.size - n};
  return true;
}

/* Where the code point of column |col| (from 1) starts; the end of the line
 * when it is past that. */
static size_t cell_of_column(weir_sv line, uint32_t col) {
  cells c = {.rest = line};
  for (uint32_t i = 1; i < col && cells_next(&c);) i++;
  return c.to;
}

/* Cells of |line|, counted no further than a little past |limit|. */
static size_t measure(weir_sv line, size_t limit) {
  cells c = {.rest = line};
  while (c.to <= limit && cells_next(&c)) continue;
  return c.to;
}

/* The part of a line that is shown. */
typedef struct window {
  size_t from, to;
  bool cut_left, cut_right;
} window;

static window choose_window(weir_sv line, size_t start, size_t end) {
  size_t total = measure(line, end + 2 * kWindow);
  if (total <= kWindow) return (window){0, total, false, false};
  size_t from = start > kBefore ? start - kBefore : 0;
  if (end + kDots <= kWindow) from = 0;
  if (from > total - kWindow) from = total - kWindow;
  return (window){from, from + kWindow, from > 0, total > from + kWindow};
}

static void draw_window(weir_diag_out *out, weir_sv line, const window *w) {
  size_t low = w->from + (w->cut_left ? kDots : 0);
  size_t high = w->to - (w->cut_right ? kDots : 0), at = low;
  cells c = {.rest = line};
  if (w->cut_left) weir_out_text(out, "...");
  while (c.to < high && cells_next(&c)) {
    if (c.from < low || c.to > high) continue; /* half of a wide one is cut */
    weir_out_repeat(out, ' ', c.from - at);
    weir_out_bytes(out, c.bytes.data, c.bytes.size);
    at = c.to;
  }
  if (w->cut_right) weir_out_repeat(out, ' ', high - at);
  if (w->cut_right) weir_out_text(out, "...");
}

/* The cells that |s| underlines, at least one. */
static void span_cells(weir_sv line, const span *s, size_t *start,
                       size_t *end) {
  *start = cell_of_column(line, s->at.col);
  bool to_line_end = s->at.end_line > s->at.line;
  *end = cell_of_column(line, to_line_end ? UINT32_MAX : s->at.end_col);
  if (*end <= *start) *end = *start + 1;
}

/* --- frame --- */

static void draw_gutter(weir_diag_out *out, size_t width, uint32_t line) {
  char digits[16];
  size_t n = 0;
  for (; line > 0; line /= 10) digits[n++] = (char)('0' + line % 10);
  weir_out_style(out, WEIR_STYLE_FRAME);
  weir_out_repeat(out, ' ', 1 + width - n);
  while (n > 0) weir_out_bytes(out, &digits[--n], 1);
  weir_out_text(out, " |");
  weir_out_style(out, WEIR_STYLE_NONE);
}

static weir_diag_style span_style(const weir_diag *diag, const span *s) {
  if (!s->primary) return WEIR_STYLE_FRAME;
  return diag->severity == WEIR_SEVERITY_ERROR ? WEIR_STYLE_ERROR
                                               : WEIR_STYLE_WARNING;
}

static size_t clamp(size_t x, size_t low, size_t high) {
  return x < low ? low : x > high ? high : x;
}

static void draw_underline(weir_diag_out *out, const weir_diag *diag,
                           const span *s, weir_sv line, const window *w) {
  size_t start, end;
  span_cells(line, s, &start, &end);
  /* A span may stand just behind the line's end, or be cut away. */
  start = clamp(start, w->from, w->to);
  end = clamp(end, start + 1, w->to > start ? w->to : start + 1);
  weir_out_repeat(out, ' ', 1 + start - w->from);
  weir_out_style(out, span_style(diag, s));
  weir_out_repeat(out, s->primary ? '^' : '-', end - start);
  if (s->text[0] != '\0') weir_out_text(out, " ");
  weir_out_safe(out, weir_sv_from(s->text), " ");
  weir_out_style(out, WEIR_STYLE_NONE);
  weir_out_text(out, "\n");
}

/* One source line and an underline for each of the |count| spans on it. */
static void draw_line(weir_diag_out *out, const weir_diag *diag, size_t width,
                      weir_sv line, const span *spans, size_t count) {
  const span *main = &spans[0];
  size_t start, end;
  for (size_t i = 0; i < count; i++)
    if (spans[i].primary) main = &spans[i];
  span_cells(line, main, &start, &end);
  window w = choose_window(line, start, end);
  draw_gutter(out, width, main->at.line);
  if (line.size > 0) weir_out_text(out, " ");
  draw_window(out, line, &w);
  weir_out_text(out, "\n");
  for (size_t i = 0; i < count; i++) {
    draw_gutter(out, width, 0);
    draw_underline(out, diag, &spans[i], line, &w);
  }
}

/* --- files --- */

/* The |number|-th line (from 1) of |text| without its break. */
static weir_sv find_line(weir_sv text, uint32_t number) {
  size_t at = 0, start = 0;
  uint32_t line = 1;
  for (; at < text.size; at++) {
    unsigned char c = (unsigned char)text.data[at];
    if (c != '\n' && c != '\r' && c < 0x80) continue;
    size_t n = weir_utf8_line_break((weir_sv){text.data + at, text.size - at});
    if (n > 0 && line == number) break;
    if (n == 0) continue;
    line++;
    at += n - 1;
    start = at + 1;
  }
  if (line < number) start = at; /* past the last line */
  return (weir_sv){text.data + start, at - start};
}

static weir_sv source_of(const weir_diag_out *out, const char *file) {
  const weir_diag_printer *p = out->printer;
  return p->source != NULL ? p->source(p->source_self, file) : (weir_sv){0};
}

static void draw_arrow(weir_diag_out *out, size_t width, const span *s,
                       bool first) {
  weir_out_style(out, WEIR_STYLE_FRAME);
  weir_out_repeat(out, ' ', 1 + width);
  weir_out_text(out, first ? "--> " : "::: ");
  weir_out_style(out, WEIR_STYLE_NONE);
  weir_out_place(out, s->at.file, s->at.line, s->at.col);
  weir_out_text(out, "\n");
}

/* Spans of a file whose text is not known: their texts, if any. */
static void draw_without_source(weir_diag_out *out, size_t width,
                                const span *spans, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (spans[i].text[0] == '\0') continue;
    weir_out_repeat(out, ' ', 2 + width);
    weir_out_text(out, "= ");
    weir_out_place(out, spans[i].at.file, spans[i].at.line, spans[i].at.col);
    weir_out_text(out, ": ");
    weir_out_safe(out, weir_sv_from(spans[i].text), " ");
    weir_out_text(out, "\n");
  }
}

/* The |count| spans of one file, in order of lines. */
static void draw_file(weir_diag_out *out, const weir_diag *diag, size_t width,
                      const span *spans, size_t count, bool first) {
  const span *head = &spans[0];
  for (size_t i = 0; i < count; i++)
    if (spans[i].primary) head = &spans[i];
  weir_sv text = source_of(out, head->at.file);
  draw_arrow(out, width, head, first);
  if (text.size == 0) {
    draw_without_source(out, width, spans, count);
    return;
  }
  draw_gutter(out, width, 0);
  weir_out_text(out, "\n");
  for (size_t i = 0, n; i < count; i += n) {
    uint32_t line = spans[i].at.line;
    for (n = 1; i + n < count && spans[i + n].at.line == line;) n++;
    if (i > 0 && line > spans[i - 1].at.line + 1) weir_out_text(out, "...\n");
    draw_line(out, diag, width, find_line(text, line), spans + i, n);
  }
}

/* --- all --- */

static bool comes_before(const span *a, const span *b) {
  if (a->file_rank != b->file_rank) return a->file_rank < b->file_rank;
  if (a->at.line != b->at.line) return a->at.line < b->at.line;
  return a->at.col < b->at.col;
}

static void add_span(span *spans, size_t *count, const weir_mark *at,
                     const char *text, bool primary) {
  if (at->line == 0 || at->file == NULL) return;
  span s = {*at, text, primary, *count};
  for (size_t i = *count; i-- > 0;)
    if (strcmp(spans[i].at.file, at->file) == 0 &&
        spans[i].file_rank < s.file_rank)
      s.file_rank = spans[i].file_rank;
  size_t to = (*count)++;
  for (; to > 0 && comes_before(&s, &spans[to - 1]); to--)
    spans[to] = spans[to - 1];
  spans[to] = s;
}

size_t weir_diag_draw(weir_diag_out *out, const weir_diag *diag) {
  span spans[1 + WEIR_DIAG_LABELS];
  const weir_error *e = &diag->error;
  weir_mark at = {e->file, e->line, e->col, e->end_line, e->end_col};
  size_t count = 0, width = 1;
  add_span(spans, &count, &at, diag->label, true);
  for (uint32_t i = 0; i < diag->label_count; i++)
    add_span(spans, &count, &diag->labels[i].at, diag->labels[i].text, false);
  uint32_t largest = 0;
  for (size_t i = 0; i < count; i++)
    if (spans[i].at.line > largest) largest = spans[i].at.line;
  for (; largest >= 10; largest /= 10) width++;
  for (size_t i = 0, n; i < count; i += n) {
    size_t rank = spans[i].file_rank;
    for (n = 1; i + n < count && spans[i + n].file_rank == rank;) n++;
    draw_file(out, diag, width, spans + i, n, i == 0);
  }
  return width;
}
