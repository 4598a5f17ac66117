/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a graph file in canonical form (fmt.h): one blank behind commas and
 * colons, none within brackets, `k=v`, double quotes where no escape is needed.
 * Nothing is moved to another line. */
#include "runtime/tools/fmt.h"

#include <string.h>

/* Columns of |size| bytes. */
static size_t columns_of(const char *text, size_t size) {
  size_t count = 0;
  for (size_t i = 0; i < size; i++)
    count += ((unsigned char)text[i] & 0xc0) != 0x80;
  return count;
}

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '.';
}

/* ---- Calls and types */

/* Where a text is: in how many brackets, and in which quotes. */
typedef struct nesting {
  size_t depth;
  char quote; /* NUL: in none */
} nesting;

/* Goes past |c|; false: it closes a bracket that nothing opened. */
static bool nest(nesting *n, char c) {
  if (n->quote != '\0') {
    if (c == n->quote) n->quote = '\0';
  } else if (c == '"' || c == '\'') {
    n->quote = c;
  } else if (strchr("([{", c) != NULL) {
    n->depth++;
  } else if (strchr(")]}", c) != NULL) {
    return n->depth-- > 0;
  }
  return true;
}

/* Whether |text| is `name(...)` or `name[...]` with something behind it
 * perhaps, its brackets in pairs. */
static bool is_call(const char *text, size_t size) {
  size_t i = 0;
  nesting at = {0};
  while (i < size && is_word(text[i])) i++;
  if (i == 0 || i == size || strchr("([", text[i]) == NULL) return false;
  for (; i < size; i++) {
    char c = text[i];
    if (c == '\n' || c == '\\' || !nest(&at, c)) return false;
  }
  return at.depth == 0 && at.quote == '\0';
}

/* Whether the = at |i| stands between a name and a value. */
static bool is_assign(const char *text, size_t size, size_t i) {
  bool before = i > 0 && strchr("=<>!", text[i - 1]) != NULL;
  bool after = i + 1 < size && text[i + 1] == '=';
  return text[i] == '=' && !before && !after;
}

static void put_call(const char *text, size_t size, weir_strbuf *out) {
  nesting at = {0};
  bool blank = false; /* one is due */
  char last = '\0';
  for (size_t i = 0; i < size; i++) {
    char c = text[i];
    if (at.quote == '\0' && (c == ' ' || c == '\t')) {
      blank = last != '\0' && strchr("([{", last) == NULL &&
              !(last == '=' && at.depth > 0 && is_assign(text, i, i - 1));
      while (i + 1 < size && (text[i + 1] == ' ' || text[i + 1] == '\t')) i++;
      continue;
    }
    bool assign = at.quote == '\0' && is_assign(text, size, i);
    if (at.quote == '\0' && strchr(",)]}", c) != NULL) blank = false;
    if (assign) blank = at.depth == 0;
    if (blank) weir_strbuf_append(out, " ", 1);
    weir_strbuf_append(out, &c, 1);
    last = c;
    blank = at.quote == '\0' && (c == ',' || (assign && at.depth == 0));
    (void)nest(&at, c); /* is_call has counted the brackets */
    /* Blanks behind k= are dropped. */
    if (assign && at.depth > 0)
      while (i + 1 < size && text[i + 1] == ' ') i++;
  }
}

void weir_fmt_plain(const char *p, size_t size, bool calls, weir_strbuf *out) {
  if (calls && is_call(p, size))
    put_call(p, size, out);
  else
    weir_strbuf_append(out, p, size);
}

/* ---- Quoted scalars */

const char *weir_fmt_quoted(const char *p, bool calls, weir_strbuf *out) {
  char quote = *p;
  const char *start = p + 1;
  bool simple = true;   /* no escapes, one line */
  bool doubles = false; /* " within '...' */
  for (p++; *p != '\0'; p++) {
    if (quote == '\'' && p[0] == '\'' && p[1] == '\'') {
      simple = false;
      p++;
    } else if (quote == '"' && *p == '\\' && p[1] != '\0') {
      simple = false;
      p++;
    } else if (*p == quote) {
      break;
    } else if (*p == '\\' || *p == '\n') {
      simple = false;
    }
    doubles = doubles || *p == '"';
  }
  size_t size = (size_t)(p - start);
  if (simple && !doubles) quote = '"';
  weir_strbuf_append(out, &quote, 1);
  weir_fmt_plain(start, size, calls && simple, out);
  weir_strbuf_append(out, &quote, 1);
  return *p != '\0' ? p + 1 : p;
}

/* ---- Comments */

const char *weir_fmt_comment(const char *p, const weir_fmt_place *place,
                             size_t before, weir_strbuf *out) {
  weir_sv now = weir_strbuf_view(out);
  size_t column = columns_of(now.data + before, now.size - before);
  long wanted =
      (long)columns_of(place->row, (size_t)(p - place->row)) + place->shift;
  size_t gap = wanted > (long)column + 2 ? (size_t)wanted - column : 2;
  size_t size = strcspn(p, "\n");
  const char *end = p + size;
  while (size > 0 && strchr(" \t\r", p[size - 1]) != NULL) size--;
  weir_strbuf_repeat(out, ' ', column > 0 ? gap : 0);
  weir_strbuf_append(out, p, size);
  return end;
}

/* ---- Flow collections */

/* The end of a plain scalar in a flow collection. */
static const char *plain_end(const char *p) {
  const char *start = p;
  for (; *p != '\0' && strchr(",[]{}\n", *p) == NULL; p++) {
    if (*p == ':' && strchr(" ,[]{}\n", p[1]) != NULL) break;
    if (*p == '#' && p > start && (p[-1] == ' ' || p[-1] == '\t')) break;
  }
  return p;
}

typedef struct flow {
  weir_fmt_place place;
  weir_strbuf *out;
  size_t line;     /* where the present line begins in |out| */
  size_t depth;    /* of brackets */
  size_t attrs_at; /* depth within `attrs:`, whose texts stay; 0: outside */
  bool attrs_next; /* its collection comes */
  bool due;        /* a blank before the next value */
  bool scalar;     /* the last token was one */
} flow;

static void give_blank(flow *f) {
  if (f->due) weir_strbuf_append(f->out, " ", 1);
  f->due = false;
}

/* The line ends; empty lines go. */
static const char *flow_line(flow *f, const char *p) {
  while (*p == '\n') {
    const char *next = p + 1 + strspn(p + 1, " \t\r");
    f->place.row = p + 1;
    p = next;
  }
  long column = (long)(p - f->place.row) + f->place.shift;
  weir_strbuf_append(f->out, "\n", 1);
  f->line = weir_strbuf_view(f->out).size;
  if (*p != '#')
    weir_strbuf_repeat(f->out, ' ', column > 0 ? (size_t)column : 0);
  else
    weir_strbuf_repeat(f->out, ' ', column > 1 ? (size_t)column : 1);
  f->due = false;
  return p;
}

static const char *flow_bracket(flow *f, const char *p) {
  if (*p == '[' || *p == '{') {
    give_blank(f);
    f->depth++;
    if (f->attrs_next && f->attrs_at == 0) f->attrs_at = f->depth;
  } else {
    if (f->depth == f->attrs_at) f->attrs_at = 0;
    f->depth--;
  }
  f->attrs_next = f->due = false;
  f->scalar = strchr("]}", *p) != NULL;
  weir_strbuf_append(f->out, p, 1);
  return p + 1;
}

static const char *flow_scalar(flow *f, const char *p) {
  bool calls = f->place.calls && f->attrs_at == 0;
  const char *end = p;
  give_blank(f);
  if (*p == '"' || *p == '\'') {
    end = weir_fmt_quoted(p, calls, f->out);
  } else {
    end = plain_end(p);
    size_t size = (size_t)(end - p);
    while (size > 0 && strchr(" \t\r", p[size - 1]) != NULL) size--;
    weir_fmt_plain(p, size, calls, f->out);
    f->attrs_next = size == 5 && memcmp(p, "attrs", 5) == 0;
    end = p + size;
  }
  f->scalar = true;
  return end;
}

const char *weir_fmt_flow(const char *p, const weir_fmt_place *place,
                          weir_strbuf *out) {
  weir_sv now = weir_strbuf_view(out);
  flow f = {.place = *place, .out = out, .line = now.size};
  while (f.line > 0 && now.data[f.line - 1] != '\n') f.line--;
  while (*p != '\0') {
    if (*p == ' ' || *p == '\t' || *p == '\r') {
      if (f.scalar) f.due = true;
      p++;
    } else if (*p == '\n') {
      p = flow_line(&f, p);
    } else if (*p == '#') {
      weir_sv text = weir_strbuf_view(out);
      bool alone = text.size > 0 && text.data[text.size - 1] == ' ';
      if (alone)
        p = (weir_strbuf_append(out, p, strcspn(p, "\n")),
             p + strcspn(p, "\n"));
      else
        p = weir_fmt_comment(p, &f.place, f.line, out);
    } else if (strchr("[]{}", *p) != NULL) {
      p = flow_bracket(&f, p);
      if (f.depth == 0) return p;
    } else if (*p == ',' || (*p == ':' && f.scalar)) {
      weir_strbuf_append(out, p, 1);
      f.due = true;
      f.scalar = false;
      if (*p == ',') f.attrs_next = false;
      p++;
    } else {
      const char *next = flow_scalar(&f, p);
      if (next == p) return p; /* not YAML: parsing said so before */
      p = next;
    }
  }
  return p;
}
