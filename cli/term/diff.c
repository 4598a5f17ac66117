/* SPDX-License-Identifier: Apache-2.0 */
/* The change of a text as a unified diff. `weir fmt` moves blanks and drops
 * empty lines, but keeps the order of all others, so nothing is searched for:
 * one walk pairs the lines of both texts, an empty line with an empty one, any
 * other line with any other. Each pair that differs is a change, each line
 * without a partner too. Every line of both texts is in one edit, in its order;
 * so the diff is right for any two texts. Cost: O(lines).
 * The form is that of POSIX diff -u: changes with CONTEXT lines around them,
 * "@@ -from,lines +from,lines @@" before each group. */
#include "cli/term/diff.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

enum { CONTEXT = 3 };

/* A line that stays (' '), goes ('-') or comes ('+'); with its end. */
typedef struct edit {
  char sign;
  cli_text line;
} edit;

typedef struct edits {
  edit *list;
  size_t count, room;
  bool failed; /* no memory */
} edits;

static void add(edits *e, char sign, cli_text line) {
  if (e->count == e->room && !e->failed) {
    size_t room = e->room > 0 ? 2 * e->room : 256;
    edit *grown = reallocarray(e->list, room, sizeof *grown);
    e->failed = grown == NULL;
    if (e->failed) return;
    e->list = grown;
    e->room = room;
  }
  if (!e->failed) e->list[e->count++] = (edit){sign, line};
}

/* The first line of |text|; empty at its end. */
static cli_text line_of(cli_text text) {
  const char *end = text.size > 0 ? memchr(text.data, '\n', text.size) : NULL;
  if (end != NULL) text.size = (size_t)(end + 1 - text.data);
  return text;
}

static void drop(cli_text *text, cli_text line) {
  if (line.size == 0) return;
  text->data += line.size;
  text->size -= line.size;
}

static bool same(cli_text a, cli_text b) {
  return a.size == b.size &&
         (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static bool is_blank(cli_text line) {
  for (size_t i = 0; i < line.size; i++)
    if (strchr(" \t\r\n", line.data[i]) == NULL || line.data[i] == '\0')
      return false;
  return true;
}

/* Drops the lines of a change from both texts, up to the next equal pair. */
static void skip_change(cli_text *from, cli_text *to) {
  while (from->size > 0 || to->size > 0) {
    cli_text a = line_of(*from), b = line_of(*to);
    if (a.size > 0 && same(a, b)) return;
    bool pair = a.size > 0 && b.size > 0 && is_blank(a) == is_blank(b);
    bool goes = a.size > 0 && (b.size == 0 || is_blank(a));
    if (pair || goes) drop(from, a);
    if (pair || !goes) drop(to, b);
  }
}

/* The lines of |text| that stand before |rest|, its end. */
static void add_lines(edits *e, char sign, cli_text text, cli_text rest) {
  text.size -= rest.size;
  while (text.size > 0) {
    cli_text line = line_of(text);
    add(e, sign, line);
    drop(&text, line);
  }
}

static void compare(edits *e, cli_text from, cli_text to) {
  while (from.size > 0 || to.size > 0) {
    cli_text a = line_of(from), old = from, new = to;
    if (same(a, line_of(to))) {
      add(e, ' ', a);
      drop(&from, a);
      drop(&to, a);
      continue;
    }
    skip_change(&from, &to);
    add_lines(e, '-', old, from);
    add_lines(e, '+', new, to);
  }
}

/* Where the group of changes ends that begins at change |i|: behind its last
 * one; groups whose context would meet are one. */
static size_t group_end(const edits *e, size_t i) {
  size_t end = i;
  for (; i < e->count && i <= end + 2 * CONTEXT; i++)
    if (e->list[i].sign != ' ') end = i + 1;
  return end;
}

/* Adds the lines of the old and of the new text in edits [first, end). */
static void count_lines(const edits *e, size_t first, size_t end,
                        size_t lines[2]) {
  for (size_t i = first; i < end; i++) {
    lines[0] += e->list[i].sign != '+';
    lines[1] += e->list[i].sign != '-';
  }
}

/* "-12,3": |count| lines behind |before| others. */
static void print_range(char sign, size_t before, size_t count) {
  cli_print("%c%zu", sign, before + (count > 0));
  if (count != 1) cli_print(",%zu", count);
}

static void print_edit(const edit *e) {
  cli_print("%c", e->sign);
  cli_out(NULL, e->line.data, e->line.size);
  if (e->line.data[e->line.size - 1] != '\n')
    cli_print("\n\\ No newline at end of file\n");
}

/* Edits [first, end); lines[0] lines of the old text and lines[1] of the new
 * one stand before them. */
static void print_group(const edits *e, size_t first, size_t end,
                        const size_t lines[2]) {
  size_t count[2] = {0, 0};
  count_lines(e, first, end, count);
  cli_print("@@ ");
  print_range('-', lines[0], count[0]);
  cli_print(" ");
  print_range('+', lines[1], count[1]);
  cli_print(" @@\n");
  for (size_t i = first; i < end; i++) print_edit(&e->list[i]);
}

static void print_groups(const char *name, const edits *e) {
  size_t lines[2] = {0, 0}, at = 0; /* counted up to edit |at| */
  bool named = false;
  for (size_t i = 0; i < e->count; i++) {
    if (e->list[i].sign == ' ') continue;
    size_t end = group_end(e, i);
    size_t first = i - at > CONTEXT ? i - CONTEXT : at;
    size_t last = e->count - end > CONTEXT ? end + CONTEXT : e->count;
    if (!named) cli_print("--- %s\n+++ %s\n", name, name);
    named = true;
    count_lines(e, at, first, lines);
    print_group(e, first, last, lines);
    count_lines(e, first, last, lines);
    at = last;
    i = last - 1;
  }
}

bool cli_print_diff(const char *name, cli_text from, cli_text to) {
  edits e = {NULL, 0, 0, false};
  compare(&e, from, to);
  if (!e.failed) print_groups(name, &e);
  free(e.list);
  return !e.failed;
}
