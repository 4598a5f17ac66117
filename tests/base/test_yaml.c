/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/yaml/yaml.h"
#include "runtime/base/yaml/yaml_scalar.h"
#include "runtime/base/yaml/yaml_simple.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/check.h"

/* --- the surroundings of one parse --- */

typedef struct parsed {
  weir_arena arena;
  weir_error err;
  const weir_yaml *root;
  weir_status status;
  uint32_t reports;
  weir_diag last;
} parsed;

static void count_report(void *self, const weir_diag *diag) {
  parsed *p = self;
  p->reports++;
  p->last = *diag;
}

static void parse_limited(parsed *p, weir_sv text,
                          const weir_yaml_limits *limits) {
  *p = (parsed){.err = WEIR_ERROR_INIT};
  weir_arena_init(&p->arena, weir_allocator_system());
  weir_diag_sink sink = {p, count_report};
  p->status = weir_yaml_parse(text, "t.yaml", limits, &p->arena, &sink,
                              &p->root, &p->err);
}

static void parse(parsed *p, const char *text) {
  parse_limited(p, weir_sv_from(text), NULL);
}

static void parse_ok(parsed *p, const char *text) {
  parse(p, text);
  assert_ok(p->status, &p->err);
  assert_non_null(p->root);
  assert_int_equal(p->reports, 0);
}

static void done(parsed *p) {
  weir_arena_release(&p->arena);
}

static void assert_mark(weir_mark m, uint32_t line, uint32_t col,
                        uint32_t end_line, uint32_t end_col) {
  if (m.line != line || m.col != col || m.end_line != end_line ||
      m.end_col != end_col)
    fail_msg("mark %u:%u-%u:%u, want %u:%u-%u:%u", m.line, m.col, m.end_line,
             m.end_col, line, col, end_line, end_col);
  assert_string_equal(m.file, "t.yaml");
}

static const weir_yaml *at_key(const weir_yaml *map, const char *key) {
  const weir_yaml *value = weir_yaml_get(map, key);
  if (value == NULL) fail_msg("no key %s", key);
  return value;
}

/* Fails unless |text| gives |id| at |line|:|col| and the message has |says|. */
static void refuse(const char *text, const char *id, uint32_t line,
                   uint32_t col, const char *says) {
  parsed p;
  parse(&p, text);
  if (p.status == WEIR_OK || strcmp(p.err.id, id) != 0 || p.err.line != line ||
      p.err.col != col || strstr(p.err.message, says) == NULL)
    fail_msg("'%.60s': %s %u:%u %s", text, p.err.id, p.err.line, p.err.col,
             p.err.message);
  assert_null(p.root);
  assert_true(p.reports >= 1);
  done(&p);
}

/* --- trees --- */

static void builds_a_tree(void **state) {
  (void)state;
  parsed p;
  parse_ok(&p,
           "# first\n"
           "weir: 1\n"
           "nodes:\n"
           "  c: matmul(a, b)   # c\n"
           "  \"d\": 'it''s'\n"
           "\n"
           "list: [1, {x: y}, []]\n"
           "text: |\n"
           "  two\n"
           "  lines\n"
           "none:\n");
  const weir_yaml *root = p.root;
  assert_int_equal(root->kind, WEIR_YAML_MAP);
  assert_int_equal(root->count, 5);
  assert_mark(root->mark, 2, 1, 11, 6);
  const weir_yaml *nodes = at_key(root, "nodes");
  assert_mark(nodes->mark, 4, 3, 5, 15);
  assert_mark(nodes->entries[0].key_mark, 4, 3, 4, 4);
  const weir_yaml *c = at_key(nodes, "c");
  assert_true(weir_sv_is(c->text, "matmul(a, b)"));
  assert_true(c->plain);
  assert_mark(c->mark, 4, 6, 4, 18);
  const weir_yaml *d = at_key(nodes, "d");
  assert_false(d->plain);
  assert_true(weir_sv_is(d->text, "it's"));
  const weir_yaml *list = at_key(root, "list");
  assert_int_equal(list->kind, WEIR_YAML_LIST);
  assert_int_equal(list->count, 3);
  assert_mark(list->mark, 7, 7, 7, 22);
  assert_true(weir_sv_is(at_key(list->items[1], "x")->text, "y"));
  assert_int_equal(list->items[2]->count, 0);
  assert_true(weir_sv_is(at_key(root, "text")->text, "two\nlines\n"));
  assert_true(weir_yaml_null(at_key(root, "none")));
  assert_null(weir_yaml_get(root, "absent"));
  assert_int_equal(at_key(root, "weir")->anchor.line, 0);
  done(&p);
}

static void counts_columns_in_code_points(void **state) {
  (void)state;
  parsed p;
  parse_ok(&p, "\xef\xbb\xbf\xc3\xa9\xe6\xbc\xa2: \xf0\x9f\x98\x80 x\r\nb: 1");
  assert_mark(p.root->entries[0].key_mark, 1, 1, 1, 3);
  assert_mark(p.root->entries[0].value->mark, 1, 5, 1, 8);
  assert_mark(p.root->entries[1].key_mark, 2, 1, 2, 2);
  done(&p);
}

static void keeps_nothing_of_the_text(void **state) {
  (void)state;
  char text[] = "a: [b, c]";
  char file[] = "t.yaml";
  parsed p = {.err = WEIR_ERROR_INIT};
  weir_arena_init(&p.arena, weir_allocator_system());
  assert_ok(weir_yaml_parse(weir_sv_from(text), file, NULL, &p.arena, NULL,
                            &p.root, &p.err),
            &p.err);
  memset(text, 'z', sizeof text);
  memset(file, 'z', sizeof file);
  assert_true(weir_sv_is(at_key(p.root, "a")->items[1]->text, "c"));
  assert_string_equal(p.root->mark.file, "t.yaml");
  done(&p);
}

static void marks_within_scalars(void **state) {
  (void)state;
  parsed p;
  parse_ok(&p,
           "a: relu(\xc3\xa9, w1)\n"
           "b: \"relu(x)\"\n"
           "c: \"re\\u006cu\"\n"
           "d: two\n"
           "   lines\n"
           "e: &e long name\n"
           "f: *e\n");
  assert_mark(weir_yaml_mark_within(at_key(p.root, "a"), 9, 2), 1, 12, 1, 14);
  assert_mark(weir_yaml_mark_within(at_key(p.root, "a"), 9, 99), 1, 12, 1, 15);
  assert_mark(weir_yaml_mark_within(at_key(p.root, "b"), 5, 1), 2, 10, 2, 11);
  assert_mark(weir_yaml_mark_within(at_key(p.root, "c"), 2, 1), 3, 4, 3, 15);
  assert_mark(weir_yaml_mark_within(at_key(p.root, "d"), 4, 1), 4, 4, 5, 9);
  assert_mark(weir_yaml_mark_within(at_key(p.root, "e"), 5, 4), 6, 12, 6, 16);
  assert_mark(weir_yaml_mark_within(at_key(p.root, "f"), 5, 4), 7, 4, 7, 6);
  done(&p);
}

/* --- aliases and merging --- */

static void resolves_aliases(void **state) {
  (void)state;
  parsed p;
  parse_ok(&p,
           "a: &x [1, 2]\n"
           "b: *x\n"
           "c: &x word\n"
           "d: *x\n"
           "&k e: f\n"
           "g: *k\n");
  const weir_yaml *b = at_key(p.root, "b");
  assert_int_equal(b->count, 2);
  assert_mark(b->mark, 2, 4, 2, 6);
  assert_mark(b->anchor, 1, 4, 1, 6);
  assert_ptr_equal(b->items, at_key(p.root, "a")->items);
  assert_true(weir_sv_is(at_key(p.root, "d")->text, "word"));
  assert_true(weir_sv_is(at_key(p.root, "g")->text, "e"));
  done(&p);
}

static void merges_maps(void **state) {
  (void)state;
  parsed p;
  parse_ok(&p,
           "one: &one {a: 1, b: 1}\n"
           "two: &two {b: 2, c: 2}\n"
           "x: {c: 0, <<: [*one, *two], d: 0}\n"
           "y: {<<: *two}\n"
           "z: {<<: {q: 1}, r: 2}\n"
           "w: {\"<<\": 3}\n");
  const weir_yaml *x = at_key(p.root, "x");
  static const char *const kKeys[] = {"c", "d", "a", "b"};
  static const int64_t kValues[] = {0, 0, 1, 1};
  assert_int_equal(x->count, 4);
  for (uint32_t i = 0; i < 4; i++) {
    int64_t v = -1;
    assert_true(weir_sv_is(x->entries[i].key, kKeys[i]));
    assert_true(weir_yaml_int(x->entries[i].value, &v));
    assert_int_equal(v, kValues[i]);
  }
  assert_int_equal(at_key(p.root, "y")->count, 2);
  assert_int_equal(at_key(p.root, "z")->count, 2);
  assert_true(weir_sv_is(at_key(p.root, "w")->entries[0].key, "<<"));
  done(&p);
  refuse("a: {<<: 3}\n", "W1010", 1, 9, "`<<` takes a map");
  refuse("a: {<<: [{b: 1}, c]}\n", "W1010", 1, 18, "`<<` takes a map");
  refuse("a: {<<: {b: 1}, <<: {c: 1}}\n", "W1006", 1, 17, "'<<' occurs twice");
}

/* Text of |count| lines made by |line| of a number. */
static char *lines(const char *head, size_t count, const char *format) {
  size_t room = strlen(head) + count * (strlen(format) + 60) + 1;
  char *text = malloc(room);
  size_t n = (size_t)snprintf(text, room, "%s", head);
  for (size_t i = 1; i <= count; i++) {
    /* each format takes the number up to four times, and the one before */
    char line[128], number[24], before[24];
    snprintf(number, sizeof number, "%zu", i);
    snprintf(before, sizeof before, "%zu", i - 1);
    size_t k = 0;
    for (const char *f = format; *f != '\0'; f++) {
      const char *part = *f == '#' ? number : *f == '~' ? before : NULL;
      if (part == NULL)
        line[k++] = *f;
      else
        k += (size_t)snprintf(line + k, sizeof line - k, "%s", part);
    }
    memcpy(text + n, line, k);
    n += k;
  }
  text[n] = '\0';
  return text;
}

static void large_maps_find_duplicates(void **state) {
  (void)state;
  char *text = lines("", 20000, "key#: add(key~, 1)\n");
  parsed p;
  parse_ok(&p, text);
  assert_int_equal(p.root->count, 20000);
  done(&p);
  char *twice = malloc(strlen(text) + 30);
  sprintf(twice, "%skey777: 1\nkey9: 1\n", text);
  parse(&p, twice);
  assert_string_equal(p.err.id, "W1006");
  assert_int_equal(p.err.line, 20001);
  assert_int_equal(p.reports, 2);
  assert_int_equal(p.last.labels[0].at.line, 9);
  done(&p);
  free(twice);
  free(text);
}

static void big_merges_are_unique(void **state) {
  (void)state;
  char *text = lines("a: &a\n", 100, "  k#: 1\n");
  char *all = malloc(strlen(text) + 60);
  sprintf(all, "%sb:\n  k50: 2\n  <<: *a\n  z: 3\n", text);
  parsed p;
  parse_ok(&p, all);
  const weir_yaml *b = at_key(p.root, "b");
  int64_t v = 0;
  assert_int_equal(b->count, 101);
  assert_true(weir_yaml_int(at_key(b, "k50"), &v));
  assert_int_equal(v, 2);
  done(&p);
  free(all);
  free(text);
}

/* --- refusals --- */

static void refuses_bad_syntax(void **state) {
  (void)state;
  refuse("a: b: c\n", "W1001", 1, 5, "mapping values");
  refuse("a:\n\tb: 1\n", "W1001", 2, 1, "a tab cannot indent");
  refuse("a:\n  \tb: 1\n", "W1001", 2, 3, "a tab cannot indent");
  refuse("a: @x\n", "W1001", 1, 4, "cannot start with '@'");
  refuse("a: [1, 2\n", "W1001", 1, 4, "[ is not closed");
  refuse("a: {b: 'x\n", "W1001", 1, 8, "' is not closed");
  refuse("a: [1, 2\nb: 3\n", "W1001", 2, 2, "expected ',' or ']'");
  refuse("a: 1\n b: 2\n", "W1001", 2, 3, "mapping values");
  refuse("? [a]\n: 1\n", "W1001", 1, 3, "a key must be text, found a list");
  refuse("a: \x01\n", "W1001", 1, 4, "byte 3 is the control character U+0001");
  refuse("%YAML 2.0\n---\na: 1\n", "W1001", 1, 1, "");
  parsed p;
  parse(&p, "a: [1,\nb: 2}\n");
  assert_string_equal(p.err.id, "W1001");
  assert_int_equal(p.last.label_count, 1);
  done(&p);
}

static void refuses_other_encodings(void **state) {
  (void)state;
  refuse("a: \xff\n", "W1002", 1, 4, "byte 3 is not UTF-8");
  refuse("a: 1\nb: \xc3(\n", "W1002", 2, 4, "byte 8 is not UTF-8");
  refuse(
      "\xef\xbb\xbf"
      "a: \xed\xa0\x80\n",
      "W1002", 1, 4, "byte 6 is not");
  refuse(
      "\xff\xfe"
      "a",
      "W1002", 1, 1, "UTF-16");
  parsed p;
  parse_limited(&p, (weir_sv){"a\0:\0 \0b\0", 8}, NULL);
  assert_string_equal(p.err.id, "W1002");
  assert_string_equal(p.err.message,
                      "byte 1 is NUL; the file looks like UTF-16");
  done(&p);
  parse_limited(&p, (weir_sv){"ab: \0", 5}, NULL);
  assert_string_equal(p.err.message, "byte 4 is NUL");
  done(&p);
}

static void refuses_empty_and_several(void **state) {
  (void)state;
  refuse("", "W1008", 1, 1, "no YAML value");
  refuse("# only this\n", "W1008", 1, 1, "no YAML value");
  refuse("---\n...\n", "W1008", 1, 1, "no YAML value");
  refuse("a: 1\n---\nb: 1\n", "W1007", 2, 1, "second document");
  parsed p;
  parse_ok(&p, "---\na: 1\n...\n");
  done(&p);
  parse_ok(&p, "''\n");
  done(&p);
}

static void refuses_tags(void **state) {
  (void)state;
  refuse("a: !!python/object:os.system x\n", "W1005", 1, 4, "python/object");
  refuse("a: !include b.yaml\n", "W1005", 1, 4, "!include");
  refuse("!t\na: 1\n", "W1005", 1, 1, "!t");
  refuse("a: !x!y z\n", "W1005", 1, 4, "tag handle");
  refuse("a: [!!seq [1]]\n", "W1005", 1, 5, "seq");
}

static void refuses_duplicate_keys(void **state) {
  (void)state;
  refuse("a: 1\nb: 2\n'a': 3\n", "W1006", 3, 1,
         "'a' occurs twice, first in line 1");
  parsed p;
  parse(&p, "m:\n  b: 1\n  c: {x: 1, x: 2}\n  b: 2\n");
  assert_int_equal(p.reports, 2);
  assert_int_equal(p.err.line, 3);
  assert_int_equal(p.err.col, 13);
  assert_int_equal(p.last.error.line, 4);
  assert_int_equal(p.last.label_count, 1);
  assert_mark(p.last.labels[0].at, 2, 3, 2, 4);
  done(&p);
}

static void refuses_unknown_anchors(void **state) {
  (void)state;
  refuse("a: *x\nb: &x 1\n", "W1011", 1, 4, "no anchor &x");
  refuse("a: &x [*x]\n", "W1011", 1, 8, "*x stands inside its own anchor");
  parsed p;
  parse(&p, "a: *x\nb: *y\nc: !t 1\n");
  assert_int_equal(p.reports, 3); /* goes on */
  done(&p);
}

static void reports_at_most_a_hundred(void **state) {
  (void)state;
  char *text = lines("", 500, "k#: *none\n");
  parsed p;
  parse(&p, text);
  assert_int_equal(p.reports, 100);
  assert_null(p.root);
  done(&p);
  free(text);
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The best of three, so that a busy machine does not fail the test. */
static double best_time(const char *text, const char *id) {
  double best = 1e9;
  for (int i = 0; i < 3; i++) {
    parsed p;
    double start = seconds();
    parse(&p, text);
    double took = seconds() - start;
    if (took < best) best = took;
    assert_string_equal(p.err.id, id);
    done(&p);
  }
  return best;
}

static void bounds_depth(void **state) {
  (void)state;
  static const char *const kNests[] = {"[", "- ", "{a: ", "? ", "[{a: "};
  for (size_t i = 0; i < sizeof kNests / sizeof kNests[0]; i++) {
    size_t size = strlen(kNests[i]);
    char *text = malloc(100000 * size + 1);
    for (size_t k = 0; k < 100000; k++)
      memcpy(text + k * size, kNests[i], size);
    text[100000 * size] = '\0';
    assert_true(best_time(text, "W1003") < 0.05);
    free(text);
  }
  char at_limit[130];
  memset(at_limit, '[', 64);
  memset(at_limit + 64, ']', 64);
  parsed p;
  parse_limited(&p, (weir_sv){at_limit, 128}, NULL);
  assert_ok(p.status, &p.err);
  done(&p);
  weir_yaml_limits limits = {.depth = 63};
  parse_limited(&p, (weir_sv){at_limit, 128}, &limits);
  assert_string_equal(p.err.id, "W1003");
  assert_int_equal(p.err.col, 64);
  done(&p);
}

static void aliases_count_as_depth(void **state) {
  (void)state;
  char *text = lines("a0: &a0 [x]\n", 62, "a#: &a# [*a~]\n");
  parsed p;
  parse_ok(&p, text);
  done(&p);
  free(text);
  text = lines("a0: &a0 [x]\n", 63, "a#: &a# [*a~]\n");
  parse(&p, text);
  assert_string_equal(p.err.id, "W1003");
  assert_int_equal(p.err.line, 64);
  done(&p);
  free(text);
}

static void refuses_bombs(void **state) {
  (void)state;
  char *text = lines("a0: &a0 [x]\n", 40, "a#: &a# [*a~,*a~,*a~,*a~]\n");
  assert_true(best_time(text, "W1004") < 0.05);
  free(text);
  /* each map takes over all keys of the one before */
  text = lines("a0: &a0 {x: 1}\n", 40000, "a#: &a# {<<: *a~, k#: 1}\n");
  assert_true(best_time(text, "W1004") < 0.05);
  free(text);
  text = lines("", 100000, "%TAG !a#! tag:x,2000:\n");
  assert_true(best_time(text, "W1001") < 0.05);
  free(text);
  /* honest use stays far below */
  text = lines("a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9]\n", 900, "b#: *a\n");
  parsed p;
  parse_ok(&p, text);
  done(&p);
  free(text);
}

static void bounds_size(void **state) {
  (void)state;
  weir_yaml_limits limits = {.bytes = 10};
  parsed p;
  parse_limited(&p, WEIR_SV_LIT("a: 1234567"), &limits);
  assert_ok(p.status, &p.err);
  done(&p);
  parse_limited(&p, WEIR_SV_LIT("a: 12345678"), &limits);
  assert_string_equal(p.err.id, "W1013");
  done(&p);
  limits = (weir_yaml_limits){.nodes = 4};
  parse_limited(&p, WEIR_SV_LIT("[1, 2, 3]"), &limits);
  assert_ok(p.status, &p.err);
  done(&p);
  parse_limited(&p, WEIR_SV_LIT("[1, 2, 3, 4]"), &limits);
  assert_string_equal(p.err.id, "W1013");
  assert_int_equal(p.err.col, 11);
  done(&p);
}

/* --- the simple reader --- */

static void knows_simple_text(void **state) {
  (void)state;
  static const char *const kSimple[] = {
      "a: b",
      "# c\n\na: b # c\n  \nb: -1\nc.d : .5\n",
      "a:\n  b:\n    c: d(e, [f], \"g\", h=1)\n  i: f32[2, 2] = eye(2)\nj:\n",
      "a: [b, 1.5e-3 , c]   # d\nb: []\nc: [ ]\n",
      "a:b: c:d#e\n",
      "a:\n  - b c\n  - -1   # d\n  - e(f, 1)\ng:\n h:\n  -  i\n j: k\n",
      "a:\nb: c\n"};
  static const char *const kOther[] = {"",
                                       "# a",
                                       "a",
                                       " a: b",
                                       "a: b\n c: d",
                                       "a: 'b'",
                                       "a: \"b\"",
                                       "a: |\n  b",
                                       "a: &b c",
                                       "a: *b",
                                       "a: {b: c}",
                                       "- a",
                                       "a: b: c",
                                       "a: b:",
                                       "a:\tb",
                                       "a: b\r\n",
                                       "a: \xc3\xa9",
                                       "a: [b, [c]]",
                                       "a: [b",
                                       "a: [b,]",
                                       "a: [b]c",
                                       "a: [b]#c",
                                       "'a': b",
                                       "a:\n b: c\n  d: e",
                                       "a:\n  b: c\n d: e",
                                       "--- \na: b",
                                       "...\n",
                                       "a: !b c",
                                       "a #: b",
                                       "? a",
                                       "<<: a",
                                       "a: ~",
                                       "a: @b",
                                       "a: [-b]",
                                       "a: [b c]",
                                       "a: [b: c]",
                                       "a:\n- b",
                                       "a:\n  - b: c",
                                       "a:\n  - b:",
                                       "a:\n  -",
                                       "a:\n  - - b",
                                       "a:\n  - b\n    c",
                                       "a:\n  - b\n    - c",
                                       "a:\n  - b\n - c",
                                       "a:\n  - b\n  c: d",
                                       "a:\n  c: d\n  - b",
                                       "a: b\n  - c",
                                       "a:\n  - [b]",
                                       "a:\n  -b",
                                       " - a",
                                       "a: b\n c"};
  for (size_t i = 0; i < sizeof kSimple / sizeof kSimple[0]; i++) {
    if (!weir_yaml_is_simple(weir_sv_from(kSimple[i]), weir_allocator_system()))
      fail_msg("'%s' is not read simply", kSimple[i]);
    parsed p;
    parse_ok(&p, kSimple[i]);
    done(&p);
  }
  for (size_t i = 0; i < sizeof kOther / sizeof kOther[0]; i++)
    if (weir_yaml_is_simple(weir_sv_from(kOther[i]), weir_allocator_system()))
      fail_msg("'%s' is read simply", kOther[i]);
  char key[1100];
  memset(key, 'k', sizeof key);
  memcpy(key + sizeof key - 4, ": v", 4);
  assert_false(weir_yaml_is_simple(weir_sv_from(key), weir_allocator_system()));
  assert_true(
      weir_yaml_is_simple(weir_sv_from(key + 200), weir_allocator_system()));
}

static void reads_simple_text(void **state) {
  (void)state;
  parsed p;
  parse_ok(&p, "a:\n  b:\n    c: [x,  2 ]\n  d:\ne: f g  # h\n");
  assert_mark(p.root->mark, 1, 1, 5, 7);
  const weir_yaml *a = at_key(p.root, "a");
  assert_mark(a->mark, 2, 3, 4, 5);
  const weir_yaml *c = at_key(at_key(a, "b"), "c");
  assert_mark(c->mark, 3, 8, 3, 16);
  assert_mark(c->items[1]->mark, 3, 13, 3, 14);
  assert_true(weir_sv_is(c->items[1]->text, "2"));
  assert_mark(at_key(a, "d")->mark, 4, 5, 4, 5);
  assert_true(weir_yaml_null(at_key(a, "d")));
  assert_true(weir_sv_is(at_key(p.root, "e")->text, "f g"));
  assert_true(weir_yaml_is_simple(WEIR_SV_LIT("a:\n  b: 1\n  b: 2\n"),
                                  weir_allocator_system()));
  done(&p);
  parse_ok(&p, "a:\n  - x y # c\n  -   z\nb: c\n");
  assert_mark(at_key(p.root, "a")->mark, 2, 3, 3, 8);
  assert_int_equal(at_key(p.root, "a")->count, 2);
  assert_mark(at_key(p.root, "a")->items[0]->mark, 2, 5, 2, 8);
  assert_mark(at_key(p.root, "a")->items[1]->mark, 3, 7, 3, 8);
  assert_true(weir_sv_is(at_key(p.root, "b")->text, "c"));
  done(&p);
  refuse("a:\n  b: 1\n  b: 2\n", "W1006", 3, 3, "'b' occurs twice");
}

/* --- scalars --- */

static void reads_integers(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int64_t want;
  } kGood[] = {{"0", 0},
               {"-0", 0},
               {"+7", 7},
               {"-12", -12},
               {"0x1F", 31},
               {"0o17", 15},
               {"9223372036854775807", INT64_MAX},
               {"-9223372036854775808", INT64_MIN}};
  static const char *const kBad[] = {"",
                                     "010",
                                     "1_000",
                                     "1e3",
                                     "1.0",
                                     "0x",
                                     "0o8",
                                     "-0x1",
                                     "0b1",
                                     "1:30",
                                     "NO",
                                     "true",
                                     "~",
                                     "9223372036854775808",
                                     "0x8000000000000000",
                                     "00"};
  int64_t v;
  for (size_t i = 0; i < sizeof kGood / sizeof kGood[0]; i++) {
    if (!weir_text_int(weir_sv_from(kGood[i].text), &v))
      fail_msg("%s", kGood[i].text);
    assert_true(v == kGood[i].want);
  }
  for (size_t i = 0; i < sizeof kBad / sizeof kBad[0]; i++)
    if (weir_text_int(weir_sv_from(kBad[i]), &v)) fail_msg("%s", kBad[i]);
}

static void reads_floats(void **state) {
  (void)state;
  static const struct {
    const char *text;
    double want;
  } kGood[] = {{"1e-3", 1e-3},      {"1e3", 1000},      {".5", 0.5},
               {"-1.5", -1.5},      {"5.", 5},          {"12", 12},
               {"0x10", 16},        {".inf", INFINITY}, {"-.INF", -INFINITY},
               {"+.Inf", INFINITY}, {"0.25", 0.25}};
  static const char *const kBad[] = {"",     "inf",   "nan",   "1.2.3", "e3",
                                     "01.5", "-.nan", "1_0.0", "no"};
  double v;
  for (size_t i = 0; i < sizeof kGood / sizeof kGood[0]; i++) {
    if (!weir_text_float(weir_sv_from(kGood[i].text), &v))
      fail_msg("%s", kGood[i].text);
    assert_true(v == kGood[i].want);
  }
  assert_true(weir_text_float(WEIR_SV_LIT(".NaN"), &v));
  assert_true(isnan(v));
  for (size_t i = 0; i < sizeof kBad / sizeof kBad[0]; i++)
    if (weir_text_float(weir_sv_from(kBad[i]), &v)) fail_msg("%s", kBad[i]);
}

static void knows_words(void **state) {
  (void)state;
  parsed p;
  parse_ok(&p, "[true, False, no, on, ~, null, '~', 'true', '1', 1, [1]]");
  bool b = false;
  int64_t i;
  double d;
  assert_true(weir_yaml_bool(p.root->items[0], &b) && b);
  assert_true(weir_yaml_bool(p.root->items[1], &b) && !b);
  assert_false(weir_yaml_bool(p.root->items[2], &b));
  assert_false(weir_yaml_bool(p.root->items[3], &b));
  assert_true(weir_yaml_null(p.root->items[4]));
  assert_true(weir_yaml_null(p.root->items[5]));
  assert_false(weir_yaml_null(p.root->items[6]));
  assert_false(weir_yaml_bool(p.root->items[7], &b));
  assert_false(weir_yaml_int(p.root->items[8], &i));
  assert_false(weir_yaml_float(p.root->items[8], &d));
  assert_true(weir_yaml_int(p.root->items[9], &i));
  assert_true(weir_yaml_float(p.root->items[9], &d));
  assert_false(weir_yaml_int(p.root->items[10], &i));
  done(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(builds_a_tree),
      cmocka_unit_test(counts_columns_in_code_points),
      cmocka_unit_test(keeps_nothing_of_the_text),
      cmocka_unit_test(marks_within_scalars),
      cmocka_unit_test(resolves_aliases),
      cmocka_unit_test(merges_maps),
      cmocka_unit_test(large_maps_find_duplicates),
      cmocka_unit_test(big_merges_are_unique),
      cmocka_unit_test(refuses_bad_syntax),
      cmocka_unit_test(refuses_other_encodings),
      cmocka_unit_test(refuses_empty_and_several),
      cmocka_unit_test(refuses_tags),
      cmocka_unit_test(refuses_duplicate_keys),
      cmocka_unit_test(refuses_unknown_anchors),
      cmocka_unit_test(reports_at_most_a_hundred),
      cmocka_unit_test(bounds_depth),
      cmocka_unit_test(aliases_count_as_depth),
      cmocka_unit_test(refuses_bombs),
      cmocka_unit_test(bounds_size),
      cmocka_unit_test(knows_simple_text),
      cmocka_unit_test(reads_simple_text),
      cmocka_unit_test(reads_integers),
      cmocka_unit_test(reads_floats),
      cmocka_unit_test(knows_words),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
