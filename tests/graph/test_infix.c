/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "kernels/kernel.h"
#include "runtime/base/env_system.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/load/load.h"
#include "tests/check.h"

/* Operators between values: the tree that an expression stands for, numbers
 * among values, places of errors and their hints, warnings. */

enum { TEXT = 512 };

/* The last finding of a load. */
typedef struct seen {
  weir_diag diag;
  int errors, warnings;
} seen;

static void look(void *self, const weir_diag *diag) {
  seen *s = self;
  bool warning = diag->severity == WEIR_SEVERITY_WARNING;
  s->warnings += warning;
  s->errors += !warning;
  s->diag = *diag;
}

/* The graph of a file with the node y: |expr|; NULL: |s| says why. */
static weir_graph *load(const char *expr, seen *s) {
  char text[2 * TEXT];
  snprintf(text, sizeof text,
           "weir: 1\n"
           "params: {n: 6, f: 0.5, shape: [2, 2]}\n"
           "import: {nn: std/nn}\n"
           "dims: [any]\n"
           "inputs: {a: 'f32[2, 2]', b: 'f32[2, 2]', c: 'f32[2, 2]', "
           "i: 'i64[2]', u: 'u8[2]', free: 'f32[any]'}\n"
           "nodes:\n"
           "  p, q: split(a, 2)\n"
           "  y: %s\n",
           expr);
  *s = (seen){.diag.error = WEIR_ERROR_INIT};
  weir_diag_sink sink = {s, look};
  weir_load_options options = {.registry = weir_builtin_registry(),
                               .sink = &sink};
  weir_graph *g = NULL;
  weir_error err = WEIR_ERROR_INIT;
  weir_status status = weir_graph_load_text(
      weir_env_system(), weir_sv_from(text), "t", &options, &g, &err);
  assert_int_equal(status == WEIR_OK, g != NULL);
  return g;
}

static void append(char *text, const char *more) {
  size_t n = strlen(text);
  snprintf(text + n, TEXT - n, "%s", more);
}

/* Writes the value as calls: "add(mul(a,b),3)". The graphs here are small, and
 * each value has one reader, so a walk may recurse. */
static void spell(const weir_graph *g, weir_value_id id, char *text) {
  const weir_node *node = &g->nodes[g->values[id].node];
  char one[64];
  bool leaf = strcmp(node->op->name, "input") == 0;
  if (strcmp(node->op->name, "const") == 0) {
    snprintf(one, sizeof one, "%g",
             weir_tensor_get_f64(g->values[id].known, 0));
    append(text, one);
    return;
  }
  snprintf(one, sizeof one, leaf ? "%.*s" : "%.*s(",
           WEIR_SV(leaf ? node->name : weir_sv_from(node->op->name)));
  append(text, one);
  for (uint32_t i = 0; !leaf && i < node->input_count; i++) {
    if (i > 0) append(text, ",");
    spell(g, node->inputs[i], text);
  }
  if (!leaf) append(text, ")");
}

static void is_spelled(const char *expr, const char *want) {
  char text[TEXT] = "";
  seen s;
  weir_graph *g = load(expr, &s);
  if (g == NULL) fail_msg("%s: %s", expr, s.diag.error.message);
  weir_value_id y = weir_graph_find_value(g, WEIR_SV_LIT("y"));
  assert_int_not_equal(y, WEIR_NO_VALUE);
  spell(g, y, text);
  if (strcmp(text, want) != 0) fail_msg("%s is %s, not %s", expr, text, want);
  weir_graph_unref(g);
}

static const struct {
  char op;
  int strength;
  const char *name;
} kOps[] = {{'+', 1, "add"}, {'-', 1, "sub"}, {'*', 2, "mul"}, {'/', 2, "div"}};
enum { OPS = sizeof kOps / sizeof kOps[0] };

/* Every pair of operators, without brackets and with them on either side, and
 * with a minus before each operand. */
static void test_every_pair(void **state) {
  (void)state;
  for (size_t k = 0; k < OPS * OPS; k++) {
    size_t i = k / OPS, j = k % OPS;
    char expr[64], left[64], right[64];
    snprintf(left, sizeof left, "%s(%s(a,b),c)", kOps[j].name, kOps[i].name);
    snprintf(right, sizeof right, "%s(a,%s(b,c))", kOps[i].name, kOps[j].name);
    snprintf(expr, sizeof expr, "a %c b %c c", kOps[i].op, kOps[j].op);
    is_spelled(expr, kOps[j].strength > kOps[i].strength ? right : left);
    snprintf(expr, sizeof expr, "a%cb%cc", kOps[i].op, kOps[j].op);
    is_spelled(expr, kOps[j].strength > kOps[i].strength ? right : left);
    snprintf(expr, sizeof expr, "(a %c b) %c c", kOps[i].op, kOps[j].op);
    is_spelled(expr, left);
    snprintf(expr, sizeof expr, "a %c (b %c c)", kOps[i].op, kOps[j].op);
    is_spelled(expr, right);
  }
  for (size_t i = 0; i < OPS; i++) {
    char expr[64], want[64];
    snprintf(expr, sizeof expr, "-a %c b", kOps[i].op);
    snprintf(want, sizeof want, "%s(neg(a),b)", kOps[i].name);
    is_spelled(expr, want);
    snprintf(expr, sizeof expr, "a %c -b", kOps[i].op);
    snprintf(want, sizeof want, "%s(a,neg(b))", kOps[i].name);
    is_spelled(expr, want);
    snprintf(expr, sizeof expr, "-(a %c b)", kOps[i].op);
    snprintf(want, sizeof want, "neg(%s(a,b))", kOps[i].name);
    is_spelled(expr, want);
  }
}

/* Numbers and params are worked out; what is left takes the dtype of the value
 * beside it. */
static void test_numbers(void **state) {
  (void)state;
  static const struct {
    const char *expr, *want;
  } kRows[] = {
      {"a + 2 * n", "add(a,12)"},
      {"2 * n + a", "add(12,a)"},
      {"a + n // 4", "add(a,1)"},
      {"a + -7 // 2", "add(a,-4)"},
      {"a * (n / 4)", "mul(a,1.5)"},
      {"a - f * n", "sub(a,3)"},
      {"a * (1 - f)", "mul(a,0.5)"},
      {"-n * a", "mul(-6,a)"},
      {"a / dim(a, 0)", "div(a,2)"},
      {"a / size(a)", "div(a,4)"},
      {"relu(a - 1) * 2", "mul(relu(sub(a,1)),2)"},
      {"relu(n / 4 + a)", "relu(add(1.5,a))"},
      {"add(a, n * 2)", "add(a,12)"},
      {"i + n", "add(i,6)"},
      {"i * 2 - n // 4", "sub(mul(i,2),1)"},
      {"1 + 2 * 3 - 4 // 2", "5"},
      {"7 / 2", "3.5"},
      {"a + shape[1]", "add(a,2)"},
      {"(a)", "a"},
      {"(((a + 1)))", "add(a,1)"},
  };
  for (size_t i = 0; i < sizeof kRows / sizeof kRows[0]; i++)
    is_spelled(kRows[i].expr, kRows[i].want);
}

/* A block's attribute is a number, its input a value, whatever they are
 * called. */
static void test_where_it_may_stand(void **state) {
  (void)state;
  weir_load_options options = {.registry = weir_builtin_registry()};
  weir_graph *g = NULL;
  weir_error err = WEIR_ERROR_INIT;
  static const char kText[] =
      "weir: 1\n"
      "inputs: {x: 'f32[2] = 1 + 2', t: 'f32[3, 2]'}\n"
      "blocks:\n"
      "  scaled:\n"
      "    in: [v]\n"
      "    attrs: {by: float = 0.5, n: int}\n"
      "    nodes: {w: 'var([dim(v, 0) * n], init=normal() * 0.1 + 1)'}\n"
      "    out: v * by * n + mean(w)\n"
      "nodes:\n"
      "  b: scaled(x - 1, n=3, by=1 / 4) / 2\n"
      "  h[0]: identity(x)\n"
      "  r:\n"
      "    repeat: {k: 0..2}\n"
      "    nodes: {'h[k+1]': 'h[k] * (k + 1) - x'}\n"
      "  s:\n"
      "    scan:\n"
      "      over: {e: t + 1}\n"
      "      carry: {sum: x * 0}\n"
      "      next: {sum: sum + e / 2}\n"
      "  w:\n"
      "    while: {carry: {z: x}, cond: 'less(mean(z) * 2, 100)', "
      "next: {z: z + z}, limit: 9}\n"
      "  lng: {op: add, in: [x * 2, -x]}\n"
      "outputs: {b: b, h: 'h[2] + 1', s: s.sum, w: w.z, l: lng}\n";
  assert_ok(weir_graph_load_text(weir_env_system(), weir_sv_from(kText), "t",
                                 &options, &g, &err),
            &err);
  for (uint32_t i = 0; i < g->output_count; i++) {
    char text[128];
    assert_string_equal(
        weir_graph_type_text(g, g->outputs[i].value, text, sizeof text),
        "f32[2]");
  }
  weir_graph_unref(g);
}

/* Errors stand at the operator, or at the operand that is wrong. Columns count
 * from the expression's first character, which is 1. */
static void test_places_and_hints(void **state) {
  (void)state;
  static const struct {
    const char *expr;
    uint32_t col;
    const char *id, *hint; /* part of the hint */
  } kRows[] = {
      {"a + zeros([3])", 3, "W2011", ""},
      {"a * 2 - i", 7, "W2005", "cast(..., f32)"},
      {"relu(a) // 2", 9, "W1113", "floor(x / y)"},
      {"a + 1 // 0", 7, "W1113", ""},
      {"a + 1e308 * 10", 11, "W1113", ""},
      {"a + 9223372036854775807 * 2", 25, "W1113", ""},
      {"i + 0.5", 5, "W2017", ""},
      {"zeros([4 / 2])", 7, "W1111", "integers divide by //"},
      {"free / dim(free, 0)", 8, "W1101", "cast(dim(...), f32)"},
      {"a + nothing", 5, "W1103", ""},
      {"a ** 2", 4, "W1101", "pow(x, 2)"},
      {"a @ b", 6, "W1115", "matmul(x, y)"},
      {"relu(a @ b)", 8, "W1101", "matmul(x, y)"},
      {"a @ cpux:0", 9, "W1115", ""},
      {"a == b", 3, "W1101", "equal(x, y)"},
      {"relu(a == b)", 9, "W1101", "equal(x, y)"},
      {"a > b", 3, "W1101", "greater(x, y)"},
      {"a >= b", 3, "W1101", "greater_equal(x, y)"},
      {"a < b", 3, "W1101", "less(x, y)"},
      {"a & b", 3, "W1101", "logical_and"},
      {"a +", 3, "W1101", ""},
      {"relu(a", 6, "W1101", "close it with )"},
      {"matmul(a, (b + 1)", 17, "W1101", "close it with )"},
      {"add(a, [1, 2)", 13, "W1101", ""},
      {"zeros([2, 2", 11, "W1101", "close it with ]"},
      {"p/split", 3, "W1103", "give the inner call a name"},
      {"nn.conv2d(a)", 1, "W1102", "did you mean nn.conv?"},
      {"nn.dens(a)", 1, "W1102", "did you mean nn.dense?"},
      {"nn.nothing(a)", 1, "W1102", "nn has dense conv"},
      {"dense(a)", 1, "W1102", "did you mean nn.dense?"},
      {"tf.relu(a)", 1, "W1102", "import: {tf: FILE}"},
  };
  for (size_t i = 0; i < sizeof kRows / sizeof kRows[0]; i++) {
    seen s;
    weir_graph *g = load(kRows[i].expr, &s);
    if (g != NULL) fail_msg("%s is accepted", kRows[i].expr);
    const weir_error *e = &s.diag.error;
    if (strcmp(e->id, kRows[i].id) != 0 || e->line != 8 ||
        e->col != 6 + kRows[i].col - 1)
      fail_msg("%s: %s at %u:%u, not %s at column %u", kRows[i].expr, e->id,
               e->line, e->col - 5, kRows[i].id, kRows[i].col);
    if (strstr(e->hint, kRows[i].hint) == NULL)
      fail_msg("%s: the hint is \"%s\"", kRows[i].expr, e->hint);
  }
}

/* The bracket that is not closed is shown. */
static void test_open_bracket(void **state) {
  (void)state;
  seen s;
  assert_null(load("matmul(a, relu(b)", &s));
  assert_int_equal(s.diag.label_count, 1);
  assert_int_equal(s.diag.labels[0].at.col, 6);
  assert_int_equal(s.diag.labels[0].at.end_col, 6 + 7);
  assert_string_equal(s.diag.labels[0].text, "this ( is not closed");
}

static char *repeated(const char *head, const char *part, size_t count,
                      const char *tail) {
  size_t h = strlen(head), n = strlen(part), t = strlen(tail);
  char *text = malloc(h + n * count + t + 1);
  assert_non_null(text);
  memcpy(text, head, h);
  for (size_t i = 0; i < count; i++) memcpy(text + h + i * n, part, n);
  memcpy(text + h + n * count, tail, t + 1);
  return text;
}

static weir_status load_all(const char *text, weir_error *err) {
  weir_load_options options = {.registry = weir_builtin_registry()};
  weir_graph *g = NULL;
  weir_status s = weir_graph_load_text(weir_env_system(), weir_sv_from(text),
                                       "t", &options, &g, err);
  weir_graph_unref(g);
  return s;
}

/* Brackets and signs nest 64 deep; a chain may be long, and its cost grows with
 * its length, not with its square. */
static void test_bounds(void **state) {
  (void)state;
  static const char kHead[] = "weir: 1\ninputs: {a: 'f32[2]'}\nnodes:\n  y: ";
  static const struct {
    const char *part, *tail;
    size_t count;
    const char *id; /* "" when it loads */
  } kRows[] = {{"-", " a\n", 64, ""},       {"-", " a\n", 65, "W1003"},
               {"(", "a\n", 65, "W1003"},   {"a + ", "a\n", 20000, ""},
               {"1 - ", "a\n", 20000, ""},  {"a * (", "a\n", 65, "W1003"},
               {"a + -", "a\n", 20000, ""}, {"-(", "a\n", 40, "W1003"}};
  for (size_t i = 0; i < sizeof kRows / sizeof kRows[0]; i++) {
    char *text = repeated(kHead, kRows[i].part, kRows[i].count, kRows[i].tail);
    weir_error err = WEIR_ERROR_INIT;
    (void)load_all(text, &err);
    if (strcmp(err.id, kRows[i].id) != 0)
      fail_msg("%zu %s: %s %s", kRows[i].count, kRows[i].part, err.id,
               err.message);
    free(text);
  }
}

/* W2021: once for a place, and not where whole numbers are meant. */
static void test_integer_division(void **state) {
  (void)state;
  static const struct {
    const char *expr;
    int warnings;
  } kRows[] = {{"cast(u / 255, f32)", 1},   {"cast(div(u, 255), f64)", 1},
               {"cast(i / i, f32) * 2", 1}, {"cast(u, f32) / 255", 0},
               {"cast(a / 255, f64)", 0},   {"cast(identity(u / 255), f32)", 0},
               {"cast(u / 255, i64)", 0},   {"cast(u / 1, f32)", 0}};
  for (size_t i = 0; i < sizeof kRows / sizeof kRows[0]; i++) {
    seen s;
    weir_graph *g = load(kRows[i].expr, &s);
    if (g == NULL) fail_msg("%s: %s", kRows[i].expr, s.diag.error.message);
    if (s.warnings != kRows[i].warnings || s.errors != 0)
      fail_msg("%s: %d warnings", kRows[i].expr, s.warnings);
    if (s.warnings > 0) {
      assert_string_equal(s.diag.error.id, "W2021");
      assert_int_equal(s.diag.error.line, 8);
      assert_non_null(strstr(s.diag.error.hint, "cast first"));
    }
    weir_graph_unref(g);
  }
}

/* A block that is called often warns once. */
static void test_integer_division_once(void **state) {
  (void)state;
  weir_load_options options = {.registry = weir_builtin_registry()};
  seen s = {.diag.error = WEIR_ERROR_INIT};
  weir_diag_sink sink = {&s, look};
  weir_graph *g = NULL;
  weir_error err = WEIR_ERROR_INIT;
  options.sink = &sink;
  static const char kText[] =
      "weir: 1\n"
      "inputs: {u: 'u8[2]'}\n"
      "blocks:\n"
      "  b: {in: [v], out: 'cast(v / 255, f32)'}\n"
      "nodes:\n"
      "  x: b(u) + b(u) * b(u)\n";
  assert_ok(weir_graph_load_text(weir_env_system(), weir_sv_from(kText), "t",
                                 &options, &g, &err),
            &err);
  assert_int_equal(s.warnings, 1);
  assert_int_equal(s.diag.error.line, 4);
  weir_graph_unref(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_pair),
      cmocka_unit_test(test_numbers),
      cmocka_unit_test(test_where_it_may_stand),
      cmocka_unit_test(test_places_and_hints),
      cmocka_unit_test(test_open_bracket),
      cmocka_unit_test(test_bounds),
      cmocka_unit_test(test_integer_division),
      cmocka_unit_test(test_integer_division_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
