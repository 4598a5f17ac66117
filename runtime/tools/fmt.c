/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical form of a graph file.
 *
 * The source is gone through once, line by line, with a stack of the blocks
 * that are open: the column where each stands and the column where it goes.
 * Lines keep their order and their contents but for blanks and quotes, so
 * comments stay where they are. Invariant: the tree of the result is that of
 * the source but for blanks in calls and types; it is compared before anything
 * is given back. Cost: time and memory in proportion to the file.
 */
#include "runtime/tools/fmt.h"

#include <string.h>

#include "runtime/api/weir_internal.h"
#include "runtime/base/yaml/yaml.h"
#include "runtime/tools/tools.h"

enum { MOST_BLOCKS = 256, STEP = 2 };

typedef struct block {
  size_t old, now; /* columns */
  bool list;       /* of items at the column of their key */
} block;

typedef struct fmt {
  const char *p; /* start of a line */
  weir_strbuf *out;
  block blocks[MOST_BLOCKS];
  size_t depth;
  bool calls;       /* the top-level key's values are calls */
  size_t attrs;     /* column of an `attrs:` that is open + 1, or 0 */
  bool key_is_open; /* the last line was `key:` */
  size_t key_old;   /* its column */
  size_t value_old; /* column of the last line's value */
  size_t value_key; /* and of its key */
  bool any;         /* something was written */
} fmt;

static size_t indent_of(const char *p) {
  return strspn(p, " ");
}

static bool is_blank_line(const char *p) {
  p += strspn(p, " \t\r");
  return *p == '\n' || *p == '\0';
}

static const char *next_line(const char *p) {
  p += strcspn(p, "\n");
  return *p == '\n' ? p + 1 : p;
}

/* The new column of a line at column |old| that stays in the open blocks. */
static size_t column_of(const fmt *f, size_t old) {
  size_t i = f->depth;
  while (i > 1 && f->blocks[i - 1].old > old) i--;
  const block *b = &f->blocks[i - 1];
  return b->old >= old ? b->now : b->now + STEP;
}

static void push(fmt *f, size_t old, size_t now, bool list) {
  if (f->depth < MOST_BLOCKS) f->blocks[f->depth++] = (block){old, now, list};
}

/* Closes and opens blocks for a line at column |old|; gives its new column. */
static size_t enter(fmt *f, size_t old, bool dash) {
  while (f->depth > 1) {
    const block *b = &f->blocks[f->depth - 1];
    if (b->old < old || (b->old == old && (dash || !b->list))) break;
    f->depth--;
  }
  const block *b = &f->blocks[f->depth - 1];
  if (dash && f->key_is_open && f->key_old == old && !b->list)
    push(f, old, b->now + STEP, true);
  else if (b->old < old)
    push(f, old, b->now + STEP, false);
  return f->blocks[f->depth - 1].now;
}

/* ---- Keys */

/* The end of a key, where its colon stands; NULL: there is none. */
static const char *key_end(const char *p) {
  if (*p == '"' || *p == '\'') {
    char quote = *p++;
    while (*p != '\0' && *p != '\n' && *p != quote)
      p += *p == '\\' && p[1] != '\0' ? 2 : 1;
    if (*p == quote) p++;
    p += strspn(p, " ");
    return *p == ':' && strchr(" \n\r", p[1]) != NULL ? p : NULL;
  }
  if (strchr("[{&*!|>#%@`", *p) != NULL) return NULL;
  for (; *p != '\0' && *p != '\n'; p++) {
    if (*p == ':' && (p[1] == '\0' || strchr(" \t\r\n", p[1]) != NULL))
      return p;
    if (*p == '#' && p[-1] == ' ') return NULL;
  }
  return NULL;
}

/* Column of the value in a line `key:  value`; 0: the line has another form. */
static size_t value_column(const char *line) {
  const char *p = line + indent_of(line);
  const char *colon = *p == '-' || *p == '\n' || *p == '\0' ? NULL : key_end(p);
  if (colon == NULL) return 0;
  const char *value = colon + 1 + strspn(colon + 1, " ");
  return strchr("\r\n#", *value) != NULL ? 0 : (size_t)(value - line);
}

/* Whether the lines above or below have their values in the same column, so
 * that somebody aligned them. */
static bool is_aligned(const fmt *f, const char *line, size_t key,
                       size_t value) {
  const char *below = next_line(line);
  return (f->value_old == value && f->value_key == key) ||
         (*below != '\0' && indent_of(below) == key &&
          value_column(below) == value);
}

/* The sections whose scalars are calls and types. */
static bool has_calls(const char *key, size_t size) {
  static const char *const names[] = {"nodes", "inputs", "blocks", "outputs",
                                      "update"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strlen(names[i]) == size && memcmp(names[i], key, size) == 0)
      return true;
  return false;
}

/* ---- Values */

/* Lines as they stand, moved by |shift|: the rest of a scalar. */
static const char *put_moved(fmt *f, const char *p, long shift) {
  size_t old = indent_of(p), size = strcspn(p, "\n");
  long now = (long)old + shift;
  const char *end = next_line(p);
  while (size > 0 && p[size - 1] == '\r') size--;
  weir_strbuf_append(f->out, "\n", 1);
  if (is_blank_line(p)) return end;
  weir_strbuf_repeat(f->out, ' ', now > 0 ? (size_t)now : 0);
  weir_strbuf_append(f->out, p + old, size - old);
  return end;
}

/* A text behind | or >: all lines further to the right than |old|. */
static const char *put_text(fmt *f, const char *p, size_t old, long shift) {
  size_t size = strcspn(p, "\n");
  while (size > 0 && strchr(" \r", p[size - 1]) != NULL) size--;
  weir_strbuf_append(f->out, p, size);
  p = next_line(p);
  while (*p != '\0') {
    const char *q = p; /* behind empty lines */
    while (*q != '\0' && is_blank_line(q)) q = next_line(q);
    if (*q == '\0' || indent_of(q) <= old) break;
    while (p < q) p = put_moved(f, p, shift);
    p = put_moved(f, p, shift);
  }
  return p;
}

/* A plain scalar; its next lines stand further to the right than |old|. */
static const char *put_plain(fmt *f, const char *p, size_t old,
                             const weir_fmt_place *place) {
  const char *end = p;
  while (*end != '\0' && *end != '\n' &&
         !(*end == '#' && end > p && strchr(" \t", end[-1]) != NULL))
    end++;
  size_t size = (size_t)(end - p);
  while (size > 0 && strchr(" \t\r", p[size - 1]) != NULL) size--;
  weir_fmt_plain(p, size, place->calls, f->out);
  if (*end == '#') return end;
  const char *line = next_line(end);
  while (*line != '\0' && !is_blank_line(line) && indent_of(line) > old &&
         line[indent_of(line)] != '#') {
    line = put_moved(f, line, place->shift);
    end = line > p && line[-1] == '\n' ? line - 1 : line;
  }
  return end;
}

/* A value behind `key:` or `-`; gives the place behind it, in its last line. */
static const char *put_value(fmt *f, const char *p, size_t old,
                             const weir_fmt_place *place) {
  while (*p == '&' || *p == '!') { /* an anchor, a tag, then the value */
    size_t size = strcspn(p, " \t\r\n");
    weir_strbuf_append(f->out, p, size);
    p += size;
    size = strspn(p, " \t\r");
    if (strchr("\n#", p[size]) != NULL) return p + size;
    weir_strbuf_append(f->out, " ", 1);
    p += size;
  }
  if (*p == '[' || *p == '{') return weir_fmt_flow(p, place, f->out);
  if (*p == '"' || *p == '\'') return weir_fmt_quoted(p, place->calls, f->out);
  return put_plain(f, p, old, place);
}

/* ---- Lines */

/* Comments and empty lines before |code|: at the column of the code behind
 * them, or of the block they are in. One empty line at most, none at the
 * beginning. */
static void put_comments(fmt *f, const char *code, size_t old, size_t now) {
  bool gap = false;
  for (; f->p < code; f->p = next_line(f->p)) {
    size_t indent = indent_of(f->p);
    if (is_blank_line(f->p)) {
      gap = f->any;
      continue;
    }
    if (gap) weir_strbuf_append(f->out, "\n", 1);
    gap = false;
    size_t column = indent == old ? now : column_of(f, indent);
    weir_strbuf_repeat(f->out, ' ', column);
    const char *text = f->p + indent;
    size_t size = strcspn(text, "\n");
    while (size > 0 && strchr(" \t\r", text[size - 1]) != NULL) size--;
    weir_strbuf_append(f->out, text, size);
    weir_strbuf_append(f->out, "\n", 1);
    f->any = true;
  }
  if (gap && *code != '\0') weir_strbuf_append(f->out, "\n", 1);
}

/* `- - ` before an item: each opens a block. */
static const char *put_dashes(fmt *f, const char *line, const char *p,
                              size_t *old, size_t *now) {
  while (*p == '-' && strchr(" \t\r\n", p[1]) != NULL) {
    weir_strbuf_append(f->out, "-", 1);
    p++;
    p += strspn(p, " \t\r");
    if (*p == '\n' || *p == '\0' || *p == '#') return p;
    weir_strbuf_append(f->out, " ", 1);
    *old = (size_t)(p - line);
    *now += STEP;
    push(f, *old, *now, false);
  }
  return p;
}

/* The key of a line, if it has one, and the blanks behind it. */
static const char *put_key(fmt *f, const char *line, const char *p,
                           size_t old) {
  const char *colon = key_end(p);
  f->key_is_open = false;
  if (colon == NULL) {
    f->value_old = 0;
    return p;
  }
  size_t size = (size_t)(colon - p);
  while (size > 0 && p[size - 1] == ' ') size--;
  if (*p == '"' || *p == '\'')
    weir_fmt_quoted(p, false, f->out);
  else
    weir_strbuf_append(f->out, p, size);
  weir_strbuf_append(f->out, ":", 1);
  if (old == 0) f->calls = has_calls(p, size);
  if (f->attrs > old) f->attrs = 0;
  if (size == 5 && memcmp(p, "attrs", 5) == 0) f->attrs = old + 1;
  const char *value = colon + 1 + strspn(colon + 1, " \t\r");
  f->key_is_open = strchr("\n#", *value) != NULL;
  f->key_old = old;
  if (f->key_is_open) {
    f->value_old = 0;
    return value;
  }
  size_t gap = (size_t)(value - colon - 1), at = (size_t)(value - line);
  bool aligned = indent_of(line) == old && is_aligned(f, line, old, at);
  weir_strbuf_repeat(f->out, ' ', aligned ? gap : 1);
  f->value_old = indent_of(line) == old ? at : 0;
  f->value_key = old;
  return value;
}

static void put_line(fmt *f) {
  const char *line = f->p, *p = line + indent_of(line);
  size_t old = (size_t)(p - line);
  bool dash = *p == '-' && strchr(" \t\r\n", p[1]) != NULL;
  size_t now = enter(f, old, dash);
  size_t begin = weir_strbuf_view(f->out).size;
  weir_strbuf_repeat(f->out, ' ', now);
  weir_fmt_place place = {(long)now - (long)old, false, line};
  size_t outer = old;
  p = put_dashes(f, line, p, &old, &now);
  if (dash) f->key_is_open = false;
  if (*p != '\n' && *p != '\0' && *p != '#') {
    p = put_key(f, line, p, old);
    if (!dash || old != outer) outer = old;
  }
  place.calls = f->calls && f->attrs == 0;
  if (*p == '|' || *p == '>') {
    f->p = put_text(f, p, outer, place.shift);
    weir_strbuf_append(f->out, "\n", 1);
    return;
  }
  if (*p != '\n' && *p != '\0' && *p != '#') {
    if (*p == '&') { /* an anchor alone: its block follows */
      const char *rest = p + strcspn(p, " \t\r\n");
      rest += strspn(rest, " \t\r");
      f->key_is_open = f->key_is_open || strchr("\n#", *rest) != NULL;
    }
    p = put_value(f, p, outer, &place);
    p += strspn(p, " \t\r");
  }
  if (*p == '#') {
    weir_sv text = weir_strbuf_view(f->out);
    for (size_t i = text.size; i > begin; i--)
      if (text.data[i - 1] == '\n') {
        begin = i;
        break;
      }
    const char *row = p;
    while (row > line && row[-1] != '\n') row--;
    place.row = row;
    p = weir_fmt_comment(p, &place, begin, f->out);
  }
  weir_strbuf_append(f->out, "\n", 1);
  f->p = next_line(p);
}

static void put_all(fmt *f) {
  f->blocks[0] = (block){0, 0, false};
  f->depth = 1;
  while (*f->p != '\0') {
    const char *code = f->p;
    while (*code != '\0' &&
           (is_blank_line(code) || code[indent_of(code)] == '#'))
      code = next_line(code);
    if (*code == '\0') {
      put_comments(f, code, SIZE_MAX, 0);
      return;
    }
    size_t old = indent_of(code);
    bool dash = code[old] == '-' && strchr(" \t\r\n", code[old + 1]) != NULL;
    fmt ahead = *f;
    put_comments(f, code, old, enter(&ahead, old, dash));
    f->p = code;
    put_line(f);
    f->any = true;
  }
}

/* ---- The same meaning */

/* Whether two texts differ in blanks at most. */
static bool same_text(weir_sv a, weir_sv b, bool calls) {
  size_t i = 0, k = 0;
  if (!calls) return weir_sv_equal(a, b);
  for (;;) {
    while (i < a.size && strchr(" \t", a.data[i]) != NULL) i++;
    while (k < b.size && strchr(" \t", b.data[k]) != NULL) k++;
    if (i == a.size || k == b.size) return i == a.size && k == b.size;
    if (a.data[i++] != b.data[k++]) return false;
  }
}

typedef struct pair {
  const weir_yaml *a, *b;
  uint32_t next;
} pair;

static bool same_node(const weir_yaml *a, const weir_yaml *b) {
  if (a->kind != b->kind) return false;
  if (a->kind != WEIR_YAML_SCALAR) return a->count == b->count;
  return a->plain == b->plain && same_text(a->text, b->text, true);
}

/* Depth is bounded by the parser (64). */
static bool same_tree(const weir_yaml *a, const weir_yaml *b) {
  pair open[MOST_BLOCKS];
  size_t depth = 0;
  if (!same_node(a, b)) return false;
  open[depth++] = (pair){a, b, 0};
  while (depth > 0) {
    pair *top = &open[depth - 1];
    if (top->a->kind == WEIR_YAML_SCALAR || top->next == top->a->count) {
      depth--;
      continue;
    }
    uint32_t i = top->next++;
    bool map = top->a->kind == WEIR_YAML_MAP;
    if (map && !weir_sv_equal(top->a->entries[i].key, top->b->entries[i].key))
      return false;
    const weir_yaml *x = map ? top->a->entries[i].value : top->a->items[i];
    const weir_yaml *y = map ? top->b->entries[i].value : top->b->items[i];
    if (!same_node(x, y) || depth == MOST_BLOCKS) return false;
    open[depth++] = (pair){x, y, 0};
  }
  return true;
}

weir_status weir_tools_fmt(weir_runtime *runtime, const char *name,
                           const char *text, size_t size, weir_write_fn write,
                           void *self, weir_error *err) {
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  const weir_allocator *a = runtime->env.alloc;
  const weir_yaml *before = NULL, *after = NULL;
  weir_strbuf source, out;
  weir_arena arena;
  weir_strbuf_init(&source, a);
  weir_strbuf_init(&out, a);
  weir_arena_init(&arena, a);
  weir_status s = weir_yaml_parse((weir_sv){text, size}, name, NULL, &arena,
                                  NULL, &before, err);
  if (s == WEIR_OK) {
    size_t mark = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    weir_strbuf_append(&source, text + mark, size - mark);
    fmt f = {.p = weir_strbuf_view(&source).data, .out = &out};
    if (!source.failed) put_all(&f);
    s = weir_strbuf_status(source.failed ? &source : &out, err);
  }
  if (s == WEIR_OK) {
    s = weir_yaml_parse(weir_strbuf_view(&out), name, NULL, &arena, NULL,
                        &after, NULL);
    if (s == WEIR_RESOURCE_EXHAUSTED)
      s = weir_fail_memory(err, out.size);
    else if (s != WEIR_OK || !same_tree(before, after))
      s = weir_fail(err, WEIR_W9001, NULL,
                    "%s cannot be formatted without a change of its meaning",
                    name);
  }
  weir_sv done = weir_strbuf_view(&out);
  if (s == WEIR_OK && !write(self, done.data, done.size))
    s = weir_fail(err, WEIR_W5009, NULL, "%s cannot be written", name);
  weir_arena_release(&arena);
  weir_strbuf_release(&out);
  weir_strbuf_release(&source);
  return s;
}
