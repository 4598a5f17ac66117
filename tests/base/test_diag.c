/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/diag/diag.h"
#include "runtime/base/diag/diag_print.h"
#include "runtime/base/diag/nearest.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/strbuf.h"
#include "runtime/base/yaml/yaml.h"
#include "tests/check.h"

static const char kMlp[] =
    "weir: 1\n"
    "params:\n"
    "  batch: 64\n"
    "inputs:\n"
    "  x: f32[batch, 784]\n"
    "nodes:\n"
    "  # weights\n"
    "  w1: var([512, 128])\n"
    "  h:  relu(matmul(x, w1))\n"
    "  y:  add(h, h)";

static weir_sv source(void *self, const char *file) {
  if (strcmp(file, "mlp.weir.yaml") == 0) return weir_sv_from(kMlp);
  if (self != NULL && strcmp(file, "t.yaml") == 0) return weir_sv_from(self);
  return (weir_sv){0};
}

static weir_mark at(uint32_t line, uint32_t col, uint32_t size) {
  return (weir_mark){"mlp.weir.yaml", line, col, line, col + size};
}

static weir_strbuf g_text;

/* The printed form; lent until the next call. */
static const char *printed(const weir_diag *d, weir_diag_format format,
                           bool color, const char *text) {
  weir_strbuf_clear(&g_text);
  weir_diag_printer p = {.format = format,
                         .color = color,
                         .out = weir_strbuf_writer(&g_text),
                         .source = source,
                         .source_self = (void *)(uintptr_t)text};
  assert_true(weir_diag_print(&p, d));
  return g_text.data;
}

static weir_diag sample(void) {
  weir_error err = WEIR_ERROR_INIT;
  weir_mark place = at(9, 12, 13), declared = at(5, 6, 15);
  (void)weir_fail(&err, WEIR_W2012, &place,
                  "matmul: inner dimensions differ, %d and %d", 784, 512);
  weir_hint(&err, "did you mean  w1: var([784, 128], ...)?");
  weir_diag d;
  weir_diag_init(&d, &err);
  weir_diag_set_label(&d, "needs dim 1 of x == dim 0 of w1");
  weir_diag_add_label(&d, &declared, "x is f32[64, 784]");
  weir_diag_add_note(&d, "w1 is f32[512, 128], declared at %s:%d:%d",
                     "mlp.weir.yaml", 8, 7);
  return d;
}

static void draws_the_sample(void **state) {
  (void)state;
  weir_diag d = sample();
  assert_string_equal(
      printed(&d, WEIR_DIAG_HUMAN, false, NULL),
      "error[W2012]: matmul: inner dimensions differ, 784 and 512\n"
      "  --> mlp.weir.yaml:9:12\n"
      "   |\n"
      " 5 |   x: f32[batch, 784]\n"
      "   |      --------------- x is f32[64, 784]\n"
      "...\n"
      " 9 |   h:  relu(matmul(x, w1))\n"
      "   |            ^^^^^^^^^^^^^ needs dim 1 of x == dim 0 of w1\n"
      "   = note: w1 is f32[512, 128], declared at mlp.weir.yaml:8:7\n"
      "   = help: did you mean  w1: var([784, 128], ...)?\n");
}

static void prints_for_gcc_and_json(void **state) {
  (void)state;
  weir_diag d = sample();
  weir_error_set_node(&d.error, "h/matmul", 8);
  assert_string_equal(
      printed(&d, WEIR_DIAG_GCC, false, NULL),
      "mlp.weir.yaml:9:12: error: matmul: inner dimensions differ, 784 and 512 "
      "[W2012]\n"
      "mlp.weir.yaml:9:12: note: needs dim 1 of x == dim 0 of w1\n"
      "mlp.weir.yaml:5:6: note: x is f32[64, 784]\n"
      "mlp.weir.yaml:9:12: note: w1 is f32[512, 128], declared at "
      "mlp.weir.yaml:8:7\n"
      "mlp.weir.yaml:9:12: note: did you mean  w1: var([784, 128], ...)?\n");
  assert_string_equal(
      printed(&d, WEIR_DIAG_JSON, false, NULL),
      "{\"severity\":\"error\",\"id\":\"W2012\",\"file\":\"mlp.weir.yaml\","
      "\"line\":9,\"col\":12,\"end_line\":9,\"end_col\":25,"
      "\"node\":\"h/matmul\","
      "\"message\":\"matmul: inner dimensions differ, 784 and 512\","
      "\"label\":\"needs dim 1 of x == dim 0 of w1\","
      "\"hint\":\"did you mean  w1: var([784, 128], ...)?\","
      "\"labels\":[{\"file\":\"mlp.weir.yaml\",\"line\":5,\"col\":6,"
      "\"end_line\":5,\"end_col\":21,\"text\":\"x is f32[64, 784]\"}],"
      "\"notes\":[\"w1 is f32[512, 128], declared at mlp.weir.yaml:8:7\"]}\n");
}

static void draws_several_places(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_mark place = at(10, 11, 1), same = at(10, 14, 1), above = at(9, 3, 1),
            other = {"other.yaml", 3, 4, 3, 5}, late = at(1, 1, 4);
  (void)weir_fail(&err, WEIR_W1104, &place, "two\nlines");
  weir_diag d;
  weir_diag_init(&d, &err);
  d.severity = WEIR_SEVERITY_WARNING;
  weir_diag_add_label(&d, &same, "again");
  weir_diag_add_label(&d, &other, "and there");
  weir_diag_add_label(&d, &above, "from here");
  weir_diag_add_label(&d, &late, "the version");
  weir_diag_add_label(&d, &late, "past the limit, dropped");
  for (int i = 0; i < 8; i++) weir_diag_add_note(&d, "note %d", i);
  weir_error_set_node(&d.error, "y", 1);
  assert_string_equal(printed(&d, WEIR_DIAG_HUMAN, false, NULL),
                      "warning[W1104]: two\n"
                      "  lines\n"
                      "   --> mlp.weir.yaml:10:11\n"
                      "    |\n"
                      "  1 | weir: 1\n"
                      "    | ---- the version\n"
                      "...\n"
                      "  9 |   h:  relu(matmul(x, w1))\n"
                      "    |   - from here\n"
                      " 10 |   y:  add(h, h)\n"
                      "    |           ^\n"
                      "    |              - again\n"
                      "   ::: other.yaml:3:4\n"
                      "    = other.yaml:3:4: and there\n"
                      "    = node: y\n"
                      "    = note: note 0\n"
                      "    = note: note 1\n"
                      "    = note: note 2\n"
                      "    = note: note 3\n"
                      "    = note: note 4\n"
                      "    = note: note 5\n");
}

/* The drawing of one error at |line|:|col| of |text|. */
static const char *drawn(const char *text, uint32_t line, uint32_t col,
                         uint32_t end_line, uint32_t end_col,
                         const char *label) {
  weir_error err = WEIR_ERROR_INIT;
  weir_mark place = {"t.yaml", line, col, end_line, end_col};
  (void)weir_fail(&err, WEIR_W1001, &place, "m");
  weir_diag d;
  weir_diag_init(&d, &err);
  weir_diag_set_label(&d, "%s", label);
  return printed(&d, WEIR_DIAG_HUMAN, false, text);
}

static void counts_cells(void **state) {
  (void)state;
  /* wide, combining, tab, emoji */
  assert_string_equal(
      drawn("\xe6\xbc\xa2\xe5\xad\x97 e\xcc\x81\tx \xf0\x9f\x98\x80 bad!\n", 1,
            11, 1, 14, "here"),
      "error[W1001]: m\n"
      "  --> t.yaml:1:11\n"
      "   |\n"
      " 1 | \xe6\xbc\xa2\xe5\xad\x97 e\xcc\x81  x \xf0\x9f\x98\x80 bad!\n"
      "   |              ^^^ here\n");
  /* bytes that steer a terminal or are not UTF-8 are not passed on */
  assert_string_equal(drawn("a\x1b[31m\xe2\x80\xae\xff b", 1, 9, 1, 10, ""),
                      "error[W1001]: m\n"
                      "  --> t.yaml:1:9\n"
                      "   |\n"
                      " 1 | a\xef\xbf\xbd[31m\xef\xbf\xbd\xef\xbf\xbd b\n"
                      "   |         ^\n");
}

static void draws_odd_places(void **state) {
  (void)state;
  /* several lines: to the end of the first */
  assert_string_equal(drawn("a: b\nc: d\n", 1, 4, 2, 3, ""),
                      "error[W1001]: m\n"
                      "  --> t.yaml:1:4\n"
                      "   |\n"
                      " 1 | a: b\n"
                      "   |    ^\n");
  /* behind the last line, behind the end of a line */
  assert_string_equal(drawn("a: [\n", 2, 1, 2, 2, ""),
                      "error[W1001]: m\n"
                      "  --> t.yaml:2:1\n"
                      "   |\n"
                      " 2 |\n"
                      "   | ^\n");
  assert_string_equal(drawn("a: [\r\nb", 1, 70, 1, 71, ""),
                      "error[W1001]: m\n"
                      "  --> t.yaml:1:70\n"
                      "   |\n"
                      " 1 | a: [\n"
                      "   |     ^\n");
  assert_string_equal(drawn("a", 7, 1, 7, 2, "gone"),
                      "error[W1001]: m\n"
                      "  --> t.yaml:7:1\n"
                      "   |\n"
                      " 7 |\n"
                      "   | ^ gone\n");
  /* the five ways a line may end */
  assert_string_equal(drawn("a\nb\rc\r\nd\xc2\x85"
                            "e\xe2\x80\xa8"
                            "f",
                            6, 1, 6, 2, ""),
                      "error[W1001]: m\n"
                      "  --> t.yaml:6:1\n"
                      "   |\n"
                      " 6 | f\n"
                      "   | ^\n");
  /* no source, no place */
  assert_string_equal(drawn(NULL, 1, 1, 1, 2, "why"),
                      "error[W1001]: m\n"
                      "  --> t.yaml:1:1\n"
                      "   = t.yaml:1:1: why\n");
  weir_error err = WEIR_ERROR_INIT;
  (void)weir_fail_memory(&err, 7);
  weir_diag d;
  weir_diag_init(&d, &err);
  assert_string_equal(printed(&d, WEIR_DIAG_HUMAN, false, NULL),
                      "error[W6001]: out of memory: 7 bytes wanted\n");
  assert_string_equal(printed(&d, WEIR_DIAG_GCC, false, NULL),
                      "error: out of memory: 7 bytes wanted [W6001]\n");
}

/* |count| times "0123456789". */
static char *digits(size_t count) {
  char *text = malloc(10 * count + 1);
  for (size_t i = 0; i < count; i++) memcpy(text + 10 * i, "0123456789", 10);
  text[10 * count] = '\0';
  return text;
}

/* Draws columns |col| to |end| of a line of 300 digits. */
static void assert_window(uint32_t col, uint32_t end, const char *line,
                          size_t indent, size_t size) {
  char *text = digits(30), marks[101] = "", want[600];
  memset(marks, '^', size);
  snprintf(want, sizeof want,
           "error[W1001]: m\n  --> t.yaml:1:%u\n   |\n 1 | %s\n"
           "   | %*s%s x\n",
           col, line, (int)indent, "", marks);
  assert_string_equal(drawn(text, 1, col, 1, end, "x"), want);
  free(text);
}

static void windows_long_lines(void **state) {
  (void)state;
  char *eighty = digits(8);
  char start[120], middle[120], last[120];
  snprintf(start, sizeof start, "%s01234567890123456...", eighty);
  snprintf(middle, sizeof middle, "...3456789%s0123456...", eighty);
  snprintf(last, sizeof last, "...3456789%s0123456789", eighty);
  assert_window(5, 7, start, 4, 2);
  assert_window(151, 153, middle, 20, 2); /* 20 cells before it */
  assert_window(300, 301, last, 99, 1);
  assert_window(1, 300, start, 0, 100); /* stays inside */
  free(eighty);
}

static void colours_on_request(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_mark place = at(1, 1, 4);
  (void)weir_fail(&err, WEIR_W1001, &place, "m\x1b[0m");
  weir_hint(&err, "h");
  weir_diag d;
  weir_diag_init(&d, &err);
  assert_string_equal(printed(&d, WEIR_DIAG_HUMAN, true, NULL),
                      "\x1b[1;31merror[W1001]\x1b[0m\x1b[1m: m\\x1b[0m\x1b[0m\n"
                      "\x1b[1;34m  --> \x1b[0mmlp.weir.yaml:1:1\n"
                      "\x1b[1;34m   |\x1b[0m\n"
                      "\x1b[1;34m 1 |\x1b[0m weir: 1\n"
                      "\x1b[1;34m   |\x1b[0m \x1b[1;31m^^^^\x1b[0m\n"
                      "   \x1b[1;34m= \x1b[1;36mhelp\x1b[0m: h\n");
}

static bool refuse_write(void *self, const char *data, size_t size) {
  (void)data;
  (void)size;
  ++*(int *)self;
  return false;
}

static void tells_write_failure(void **state) {
  (void)state;
  weir_diag d = sample();
  for (int format = 0; format < 3; format++) {
    int calls = 0;
    weir_diag_printer p = {.format = (weir_diag_format)format,
                           .out = {&calls, refuse_write},
                           .source = source};
    assert_false(weir_diag_print(&p, &d));
    assert_int_equal(calls, 1);
  }
}

static void cuts_long_text_at_code_points(void **state) {
  (void)state;
  char text[400] = "";
  for (int i = 0; i < 60; i++) strcat(text, "\xe6\xbc\xa2");
  weir_error err = WEIR_ERROR_INIT;
  weir_diag d;
  (void)weir_fail(&err, WEIR_W1001, NULL, "m");
  weir_diag_init(&d, &err);
  weir_diag_set_label(&d, "%s", text);
  assert_int_equal(strlen(d.label), 159);
  weir_diag_set_label(&d, "a%s", text);
  assert_int_equal(strlen(d.label), 157);
}

/* The printed report of a broken graph, from parse to print. */
static void print_report(void *self, const weir_diag *diag) {
  weir_diag_printer p = {.out = weir_strbuf_writer(&g_text),
                         .source = source,
                         .source_self = self};
  assert_true(weir_diag_print(&p, diag));
}

static void prints_yaml_errors(void **state) {
  (void)state;
  char text[] =
      "nodes:\n"
      "  a: relu(x)\n"
      "  b: *none\n"
      "  a: relu(y)\n"
      "more:\n"
      "  c: @x\n";
  weir_strbuf_clear(&g_text);
  weir_diag_sink sink = {text, print_report};
  weir_arena arena;
  const weir_yaml *root;
  weir_error err = WEIR_ERROR_INIT;
  weir_arena_init(&arena, weir_allocator_system());
  assert_error(weir_yaml_parse(weir_sv_from(text), "t.yaml", NULL, &arena,
                               &sink, &root, &err),
               &err, "W1011");
  weir_arena_release(&arena);
  assert_string_equal(
      g_text.data,
      "error[W1011]: no anchor &none stands before this alias\n"
      "  --> t.yaml:3:6\n"
      "   |\n"
      " 3 |   b: *none\n"
      "   |      ^^^^^\n"
      "error[W1006]: the key 'a' occurs twice, first in line 2\n"
      "  --> t.yaml:4:3\n"
      "   |\n"
      " 2 |   a: relu(x)\n"
      "   |   - first here\n"
      "...\n"
      " 4 |   a: relu(y)\n"
      "   |   ^\n"
      "error[W1001]: a value without quotes cannot start with '@'\n"
      "  --> t.yaml:6:6\n"
      "   |\n"
      " 6 |   c: @x\n"
      "   |      ^\n"
      "   = help: put the value in quotes\n");
}

/* --- nearest names --- */

static const char *const kNames[] = {
    "matmul", "relu", "reduce_mean", "lstm", "reduce_max", "add", "sub"};

static weir_sv name_at(const void *self, size_t i) {
  (void)self;
  return weir_sv_from(kNames[i]);
}

static void assert_nearest(const char *name, const char *want) {
  weir_sv got = weir_nearest_name(
      weir_sv_from(name), sizeof kNames / sizeof kNames[0], name_at, NULL);
  if (!weir_sv_is(got, want))
    fail_msg("%s: '%.*s', want '%s'", name, WEIR_SV(got), want);
}

static void finds_nearest_names(void **state) {
  (void)state;
  assert_nearest("matmul", "matmul");
  assert_nearest("matmull", "matmul");
  assert_nearest("mtamul", "matmul"); /* neighbours swapped */
  assert_nearest("MatMul", "matmul");
  assert_nearest("LSTM", "lstm"); /* another case only */
  assert_nearest("rleu", "relu");
  assert_nearest("reduce-mean", "reduce_mean");
  assert_nearest("reducemean", "reduce_mean");
  assert_nearest("reduce_maen", "reduce_mean");
  assert_nearest("ad", "add");
  assert_nearest("sum", "sub");
  assert_nearest("conv2d", "");
  assert_nearest("x", "");
  assert_nearest("", "");
  char *longest = digits(10);
  assert_nearest(longest, "");
  free(longest);
}

static int start(void **state) {
  (void)state;
  weir_strbuf_init(&g_text, weir_allocator_system());
  return 0;
}

static int finish(void **state) {
  (void)state;
  weir_strbuf_release(&g_text);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(draws_the_sample),
      cmocka_unit_test(prints_for_gcc_and_json),
      cmocka_unit_test(draws_several_places),
      cmocka_unit_test(counts_cells),
      cmocka_unit_test(draws_odd_places),
      cmocka_unit_test(windows_long_lines),
      cmocka_unit_test(colours_on_request),
      cmocka_unit_test(tells_write_failure),
      cmocka_unit_test(cuts_long_text_at_code_points),
      cmocka_unit_test(prints_yaml_errors),
      cmocka_unit_test(finds_nearest_names),
  };
  return cmocka_run_group_tests(tests, start, finish);
}
