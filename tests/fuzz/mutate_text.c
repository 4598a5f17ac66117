/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/mutate_text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A random change of bytes seldom gets past the YAML reader. These changes work
 * on lines and words, so that most of their results are still YAML, and many
 * still graphs: a name that means something else, a number at a border, a block
 * where none is expected. Everything is replace(): a piece of the text by
 * another piece. */

uint64_t mutate_next(mutate_random *r) {
  /* splitmix64: Steele, Lea and Flood, OOPSLA 2014. */
  uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

size_t mutate_below(mutate_random *r, size_t n) {
  return n > 0 ? (size_t)(mutate_next(r) % n) : 0;
}

void mutate_set(mutate_text *t, const char *bytes, size_t size) {
  t->size = size < MUTATE_BYTES ? size : MUTATE_BYTES;
  memcpy(t->bytes, bytes, t->size);
}

typedef struct piece {
  size_t at, size;
} piece;

/* Puts |size| bytes where |p| is. |bytes| may not lie in |t|. */
static void replace(mutate_text *t, piece p, const char *bytes, size_t size) {
  if (t->size - p.size + size > MUTATE_BYTES) return;
  memmove(t->bytes + p.at + size, t->bytes + p.at + p.size,
          t->size - p.at - p.size);
  if (size > 0) memcpy(t->bytes + p.at, bytes, size);
  t->size = t->size - p.size + size;
}

/* A copy of a piece, since replace() moves the text. */
static size_t copy_of(const mutate_text *t, piece p, char *out, size_t room) {
  size_t size = p.size < room ? p.size : room;
  memcpy(out, t->bytes + p.at, size);
  return size;
}

/* ---- Lines */

enum { LINE_ROOM = 4096 };

static size_t count_lines(const mutate_text *t) {
  size_t n = t->size > 0 && t->bytes[t->size - 1] != '\n';
  for (size_t i = 0; i < t->size; i++) n += t->bytes[i] == '\n';
  return n;
}

/* Line |n| with its end. */
static piece line_at(const mutate_text *t, size_t n) {
  size_t at = 0;
  while (at < t->size && n > 0) n -= t->bytes[at++] == '\n';
  size_t end = at;
  while (end < t->size && t->bytes[end] != '\n') end++;
  if (end < t->size) end++;
  return (piece){at, end - at};
}

static piece any_line(const mutate_text *t, mutate_random *r) {
  return line_at(t, mutate_below(r, count_lines(t)));
}

static size_t indent_of(const mutate_text *t, piece line) {
  size_t n = 0;
  while (n < line.size && t->bytes[line.at + n] == ' ') n++;
  return n;
}

/* A line and those below it that stand further in. */
static piece block_at(const mutate_text *t, piece line) {
  size_t indent = indent_of(t, line);
  piece block = line;
  while (block.at + block.size < t->size) {
    piece next = {block.at + block.size, 0};
    while (next.at + next.size < t->size &&
           t->bytes[next.at + next.size++] != '\n') {
    }
    if (indent_of(t, next) <= indent && next.size > 1) break;
    block.size += next.size;
  }
  return block;
}

static void delete_line(mutate_text *t, mutate_random *r) {
  replace(t, any_line(t, r), "", 0);
}

static void double_line(mutate_text *t, mutate_random *r) {
  char text[LINE_ROOM];
  piece line = any_line(t, r);
  size_t size = copy_of(t, line, text, sizeof text);
  replace(t, (piece){line.at, 0}, text, size);
}

/* A line, or a block, to another place. */
static void move_lines(mutate_text *t, mutate_random *r) {
  char text[LINE_ROOM];
  piece from = any_line(t, r);
  if (mutate_below(r, 2) == 0) from = block_at(t, from);
  if (from.size > sizeof text) return;
  size_t size = copy_of(t, from, text, sizeof text);
  if (mutate_below(r, 3) > 0) replace(t, from, "", 0);
  replace(t, (piece){any_line(t, r).at, 0}, text, size);
}

/* A block gets a head and stands two columns further in; or comes out. */
static void nest_block(mutate_text *t, mutate_random *r) {
  static const char *const kHeads[] = {
      "nodes:\n",  "x:\n", "repeat: {i: 0..2}\n", "body:\n",  "blocks:\n",
      "inputs:\n", "r:\n", "outputs:\n",          "train:\n", "data:\n"};
  piece first = any_line(t, r), block = block_at(t, first);
  size_t indent = indent_of(t, first);
  bool in = mutate_below(r, 4) > 0;
  for (size_t end = block.at + block.size, at = block.at; at < end;) {
    if (in) {
      replace(t, (piece){at, 0}, "  ", 2);
      end += 2;
    } else if (at + 2 <= t->size && t->bytes[at] == ' ' &&
               t->bytes[at + 1] == ' ') {
      replace(t, (piece){at, 2}, "", 0);
      end -= 2;
    }
    while (at < end && at < t->size && t->bytes[at] != '\n') at++;
    at++;
  }
  if (!in) return;
  const char *head = kHeads[mutate_below(r, sizeof kHeads / sizeof *kHeads)];
  char text[LINE_ROOM];
  if (indent > 200) return;
  int size = snprintf(text, sizeof text, "%*s%s", (int)indent, "", head);
  replace(t, (piece){block.at, 0}, text, (size_t)size);
}

/* Lines of the other seed. */
static void borrow_lines(mutate_text *t, const mutate_text *other,
                         mutate_random *r) {
  char text[LINE_ROOM];
  piece from = any_line(other, r);
  if (mutate_below(r, 2) == 0) from = block_at(other, from);
  size_t size = copy_of(other, from, text, sizeof text);
  replace(t, (piece){any_line(t, r).at, 0}, text, size);
}

/* ---- Words: names and numbers */

enum { WORD_ROOM = 256 };

static bool in_word(char c) {
  return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* The word at or behind a place that is chosen at random; size 0: none. */
static piece any_word(const mutate_text *t, mutate_random *r, bool number) {
  for (int tries = 0; tries < 20; tries++) {
    size_t at = mutate_below(r, t->size);
    while (at > 0 && in_word(t->bytes[at - 1])) at--;
    while (at < t->size && !in_word(t->bytes[at])) at++;
    size_t end = at;
    while (end < t->size && in_word(t->bytes[end])) end++;
    if (end == at) continue;
    if (number == (isdigit((unsigned char)t->bytes[at]) != 0))
      return (piece){at, end - at};
  }
  return (piece){0, 0};
}

static bool same_word(const mutate_text *t, piece p, const char *word,
                      size_t size) {
  return p.size == size && memcmp(t->bytes + p.at, word, size) == 0;
}

/* Every |from| becomes |to|. */
static void rename_all(mutate_text *t, const char *from, size_t from_size,
                       const char *to, size_t to_size) {
  for (size_t at = 0; at < t->size;) {
    if (!in_word(t->bytes[at])) {
      at++;
      continue;
    }
    size_t end = at;
    while (end < t->size && in_word(t->bytes[end])) end++;
    piece word = {at, end - at};
    size_t before = t->size;
    if (same_word(t, word, from, from_size)) replace(t, word, to, to_size);
    at = end + t->size - before;
  }
}

/* Two names change places, everywhere or once. */
static void swap_names(mutate_text *t, mutate_random *r) {
  char a[WORD_ROOM], b[WORD_ROOM];
  piece first = any_word(t, r, false), second = any_word(t, r, false);
  size_t a_size = copy_of(t, first, a, sizeof a);
  size_t b_size = copy_of(t, second, b, sizeof b);
  if (a_size == 0 || b_size == 0) return;
  if (mutate_below(r, 2) == 0) {
    replace(t, first, b, b_size);
    return;
  }
  rename_all(t, a, a_size, "\001", 1);
  rename_all(t, b, b_size, a, a_size);
  for (size_t at = 0; at < t->size; at++)
    if (t->bytes[at] == '\001') replace(t, (piece){at, 1}, b, b_size);
}

static void rename_reserved(mutate_text *t, mutate_random *r) {
  static const char *const kNames[] = {
      "repeat", "nodes", "inputs", "outputs",   "scan",  "while", "if",
      "body",   "cond",  "then",   "else",      "true",  "false", "none",
      "null",   "nan",   "inf",    "weir",      "i",     "x",     "params",
      "blocks", "dims",  "import", "after",     "init",  "var",   "const",
      "input",  "train", "data",   "gradients", "batch", "loss",  "update",
      "a.b",    "x.x",   "r.h",    "group",     "task",  "mesh",  "layout"};
  char from[WORD_ROOM];
  const char *to = kNames[mutate_below(r, sizeof kNames / sizeof *kNames)];
  piece word = any_word(t, r, false);
  size_t size = copy_of(t, word, from, sizeof from);
  if (size == 0) return;
  if (mutate_below(r, 2) == 0)
    replace(t, word, to, strlen(to));
  else
    rename_all(t, from, size, to, strlen(to));
}

static void border_number(mutate_text *t, mutate_random *r) {
  static const char *const kNumbers[] = {"0",
                                         "-1",
                                         "1",
                                         "2",
                                         "3",
                                         "7",
                                         "8",
                                         "9",
                                         "16",
                                         "17",
                                         "64",
                                         "255",
                                         "256",
                                         "1000",
                                         "65536",
                                         "1000001",
                                         "2147483647",
                                         "2147483648",
                                         "-2147483648",
                                         "4294967296",
                                         "9007199254740993",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "9223372036854775808",
                                         "1e308",
                                         "-1e308",
                                         "1e-320",
                                         "1e999",
                                         "nan",
                                         "inf",
                                         "-inf",
                                         "0.5",
                                         "-0.0",
                                         "true"};
  const char *to =
      kNumbers[mutate_below(r, sizeof kNumbers / sizeof *kNumbers)];
  piece word = any_word(t, r, true);
  if (word.size > 0) replace(t, word, to, strlen(to));
}

/* A word of the other seed in place of one. */
static void borrow_word(mutate_text *t, const mutate_text *other,
                        mutate_random *r) {
  char text[WORD_ROOM];
  bool number = mutate_below(r, 4) == 0;
  piece from = any_word(other, r, number);
  size_t size = copy_of(other, from, text, sizeof text);
  piece to = any_word(t, r, number);
  if (size > 0 && to.size > 0) replace(t, to, text, size);
}

/* ---- Values and brackets */

/* What follows ": " on the line, without its end. */
static piece value_of(const mutate_text *t, piece line) {
  size_t end = line.at + line.size;
  if (end > line.at && t->bytes[end - 1] == '\n') end--;
  for (size_t at = line.at; at + 1 < end; at++)
    if (t->bytes[at] == ':' && t->bytes[at + 1] == ' ')
      return (piece){at + 2, end - at - 2};
  return (piece){0, 0};
}

static void exchange_values(mutate_text *t, mutate_random *r) {
  char a[LINE_ROOM], b[LINE_ROOM];
  piece first = value_of(t, any_line(t, r));
  piece second = value_of(t, any_line(t, r));
  if (first.size == 0 || second.size == 0 || first.at >= second.at) return;
  if (first.size > sizeof a || second.size > sizeof b) return;
  size_t a_size = copy_of(t, first, a, sizeof a);
  size_t b_size = copy_of(t, second, b, sizeof b);
  replace(t, second, a, a_size);
  replace(t, first, b, b_size);
}

/* Takes a bracket or mark away, or puts one in. */
static void change_mark(mutate_text *t, mutate_random *r) {
  static const char kMarks[] = "[]{}(),:\"'&*|>-#@=";
  bool take = mutate_below(r, 2) == 0;
  for (int tries = 0; tries < 40; tries++) {
    size_t at = mutate_below(r, t->size);
    if (t->size == 0 || t->bytes[at] == '\0' ||
        strchr(kMarks, t->bytes[at]) == NULL)
      continue;
    char mark = kMarks[mutate_below(r, sizeof kMarks - 1)];
    replace(t, (piece){at, take}, &mark, !take);
    return;
  }
}

/* An argument becomes a call around itself: f(a) -> f(g(a)). */
static void wrap_word(mutate_text *t, mutate_random *r) {
  static const char *const kCalls[] = {
      "relu",        "neg",     "exp",       "sum",      "mean",
      "transpose",   "softmax", "shape",     "identity", "reshape",
      "zeros_like",  "argmax",  "size",      "cast",     "stop_gradient",
      "reduce_mean", "one_hot", "concat",    "gather",   "matmul",
      "gradients",   "top_k",   "broadcast", "split",    "cumsum"};
  char text[WORD_ROOM + 40], word[WORD_ROOM];
  piece p = any_word(t, r, mutate_below(r, 4) == 0);
  size_t size = copy_of(t, p, word, sizeof word);
  if (size == 0) return;
  const char *call = kCalls[mutate_below(r, sizeof kCalls / sizeof *kCalls)];
  bool twice = mutate_below(r, 4) == 0;
  int n = twice ? snprintf(text, sizeof text, "%s(%.*s, %.20s)", call,
                           (int)(size < 100 ? size : 100), word, "0")
                : snprintf(text, sizeof text, "%s(%.*s)", call,
                           (int)(size < 100 ? size : 100), word);
  replace(t, p, text, (size_t)n);
}

void mutate_once(mutate_text *t, const mutate_text *other, mutate_random *r) {
  switch (mutate_below(r, 20)) {
    case 0:
      delete_line(t, r);
      break;
    case 1:
      double_line(t, r);
      break;
    case 2:
    case 3:
      move_lines(t, r);
      break;
    case 4:
    case 5:
      nest_block(t, r);
      break;
    case 6:
    case 7:
      swap_names(t, r);
      break;
    case 8:
    case 9:
      rename_reserved(t, r);
      break;
    case 10:
    case 11:
    case 12:
      border_number(t, r);
      break;
    case 13:
      change_mark(t, r);
      break;
    case 14:
      exchange_values(t, r);
      break;
    case 15:
    case 16:
      borrow_lines(t, other, r);
      break;
    case 17:
    case 18:
      borrow_word(t, other, r);
      break;
    default:
      wrap_word(t, r);
  }
}
