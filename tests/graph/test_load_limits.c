/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernel.h"
#include "runtime/base/strbuf.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/load/load.h"
#include "tests/check.h"

/* Files that are too large or too deep, and values from outside the file. */

typedef struct texts {
  const char *const (*files)[2]; /* path, text; ends with NULL */
} texts;

static weir_status read_text(void *self, const char *root, const char *path,
                             size_t limit, bool map, weir_file *out,
                             weir_error *err) {
  const texts *t = self;
  (void)root, (void)limit, (void)map;
  for (size_t i = 0; t->files[i][0] != NULL; i++) {
    if (strcmp(t->files[i][0], path) != 0) continue;
    const char *text = t->files[i][1];
    *out = (weir_file){{(const uint8_t *)text, strlen(text)}, NULL};
    return WEIR_OK;
  }
  return weir_fail(err, WEIR_W4001, NULL, "cannot open '%s'", path);
}

static void close_text(void *self, weir_file *file) {
  (void)self, (void)file;
}

static weir_status load(const char *text, const texts *files,
                        weir_load_options *options, weir_graph **out,
                        weir_error *err) {
  weir_fs fs = {(void *)(uintptr_t)files, read_text, close_text, NULL};
  weir_env env = {.alloc = weir_allocator_system(), .fs = &fs};
  *err = (weir_error)WEIR_ERROR_INIT;
  options->registry = weir_builtin_registry();
  return weir_graph_load_text(&env, weir_sv_from(text), "main.yaml", options,
                              out, err);
}

static void assert_refused(const char *text, const texts *files,
                           const char *id) {
  weir_load_options options = {0};
  weir_graph *g = NULL;
  weir_error err;
  assert_error(load(text, files, &options, &g, &err), &err, id);
  assert_null(g);
}

static void test_params_from_outside(void **state) {
  (void)state;
  static const char kText[] =
      "weir: 1\nparams: {n: 2, lr: 0.5, s: [1]}\nnodes: {y: 'ones([n])'}\n";
  static const char *const kBad[][3] = {
      {"m", "3", "W1114"},     {"n", "2.5", "W1111"}, {"n", "two", "W1111"},
      {"s", "3", "W1111"},     {"n", "[", "W1001"},   {"lr", "true", "W1111"},
      {"n", "{a: 1}", "W1111"}};
  weir_graph *g = NULL;
  weir_error err;
  for (size_t i = 0; i < sizeof kBad / sizeof kBad[0]; i++) {
    weir_param_value p = {weir_sv_from(kBad[i][0]), weir_sv_from(kBad[i][1])};
    weir_load_options options = {.params = &p, .param_count = 1};
    assert_error(load(kText, NULL, &options, &g, &err), &err, kBad[i][2]);
  }
  weir_param_value p = {WEIR_SV_LIT("lr"), WEIR_SV_LIT("2")};
  weir_load_options options = {.params = &p, .param_count = 1};
  assert_ok(load(kText, NULL, &options, &g, &err), &err);
  weir_graph_unref(g);
}

static void test_imports(void **state) {
  (void)state;
  static const char *const kFiles[][2] = {
      {"a.yaml",
       "weir: 1\nimport: {b: sub/b.yaml}\nblocks:\n"
       "  f: {in: [x], out: b.g(x)}\n"},
      {"sub/b.yaml",
       "weir: 1\nimport: {c: ../c.yaml}\nblocks:\n"
       "  g: {in: [x], out: c.h(neg(x))}\n"},
      {"c.yaml", "weir: 1\nblocks:\n  h: {in: [x], out: abs(x)}\n"},
      {"loop.yaml", "weir: 1\nimport: {l: loop2.yaml}\n"},
      {"loop2.yaml", "weir: 1\nimport: {l: loop.yaml}\n"},
      {"bad.yaml", "weir: 1\nblocks:\n  f: {in: [x], out: nothing(x)}\n"},
      {NULL, NULL}};
  texts files = {kFiles};
  weir_load_options options = {0};
  weir_graph *g = NULL;
  weir_error err;
  assert_ok(load("weir: 1\nimport: {a: ./a.yaml}\ninputs: {x: 'f32[2]'}\n"
                 "nodes: {y: a.f(x)}\noutputs: [y]\n",
                 &files, &options, &g, &err),
            &err);
  assert_int_equal(g->node_count, 3);
  weir_graph_unref(g);
  assert_refused("weir: 1\nimport: {l: loop.yaml}\nnodes: {y: 1}\n", &files,
                 "W1117");
  assert_refused("weir: 1\nimport: {l: main.yaml}\nnodes: {y: 1}\n", &files,
                 "W1117");
  assert_refused("weir: 1\nimport: {l: sub/../../c.yaml}\nnodes: {y: 1}\n",
                 &files, "W1117");
  assert_refused("weir: 1\nimport: {l: none.yaml}\nnodes: {y: 1}\n", &files,
                 "W1116");
  assert_refused("weir: 1\nimport: {l: bad.yaml}\nnodes: {y: 1}\n", &files,
                 "W1102");
}

/* A chain of |count| files, each importing the next. */
static void test_import_depth(void **state) {
  (void)state;
  enum { kCount = 18 };
  static char paths[kCount][32], bodies[kCount][64];
  const char *files[kCount + 1][2] = {{NULL}};
  for (int i = 0; i < kCount; i++) {
    snprintf(paths[i], sizeof paths[i], "m%d.yaml", i);
    snprintf(bodies[i], sizeof bodies[i], "weir: 1\nimport: {m: m%d.yaml}\n",
             i + 1);
    files[i][0] = paths[i];
    files[i][1] = bodies[i];
  }
  snprintf(bodies[kCount - 1], sizeof bodies[0], "weir: 1\n");
  texts t = {(const char *const(*)[2])files};
  assert_refused("weir: 1\nimport: {m: m0.yaml}\nnodes: {y: 1}\n", &t, "W1117");
  weir_load_options options = {0};
  weir_graph *g = NULL;
  weir_error err;
  assert_ok(load("weir: 1\nimport: {m: m2.yaml}\nnodes: {y: 1}\n", &t, &options,
                 &g, &err),
            &err);
  weir_graph_unref(g);
}

static const char *view(weir_strbuf *text) {
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_strbuf_status(text, &err), &err);
  return text->data;
}

static void test_sizes(void **state) {
  (void)state;
  weir_strbuf text;
  weir_strbuf_init(&text, weir_allocator_system());
  weir_strbuf_text(&text, "weir: 1\nnodes:\n  y: const([");
  weir_strbuf_repeat(&text, '1', 1);
  for (int i = 0; i < 65536; i++) weir_strbuf_text(&text, ",1");
  weir_strbuf_text(&text, "])\n");
  assert_refused(view(&text), NULL, "W1120");
  weir_strbuf_clear(&text);
  weir_strbuf_text(&text, "weir: 1\nnodes:\n  a: 1\n");
  for (int i = 0; i < 100; i++) weir_strbuf_printf(&text, "  n%d: neg(a)\n", i);
  weir_load_options options = {.max_nodes = 100};
  weir_graph *g = NULL;
  weir_error err;
  assert_error(load(view(&text), NULL, &options, &g, &err), &err, "W1014");
  options.max_nodes = 101;
  assert_ok(load(view(&text), NULL, &options, &g, &err), &err);
  weir_graph_unref(g);
  weir_strbuf_release(&text);
}

/* 50,000 nodes against the order of the file, then closed to a circle. */
static void test_long_chains(void **state) {
  (void)state;
  enum { kCount = 50000 };
  weir_strbuf text;
  weir_strbuf_init(&text, weir_allocator_system());
  for (int circle = 0; circle < 2; circle++) {
    weir_strbuf_clear(&text);
    weir_strbuf_text(&text, "weir: 1\nnodes:\n");
    for (int i = kCount - 1; i > 0; i--)
      weir_strbuf_printf(&text, "  n%d: neg(n%d)\n", i, i - 1);
    weir_strbuf_text(&text, circle ? "  n0: neg(n49999)\n" : "  n0: 1\n");
    weir_load_options options = {0};
    weir_graph *g = NULL;
    weir_error err;
    weir_status s = load(view(&text), NULL, &options, &g, &err);
    if (circle) {
      assert_error(s, &err, "W1105");
      assert_non_null(
          strstr(err.message, "a cycle of 50000: n49999 -> n49998"));
    } else {
      assert_ok(s, &err);
      assert_int_equal(g->node_count, kCount);
    }
    weir_graph_unref(g);
  }
  weir_strbuf_release(&text);
}

/* One call with 20,000 arguments, a third of them calls. */
static void test_wide_call(void **state) {
  (void)state;
  weir_strbuf text;
  weir_strbuf_init(&text, weir_allocator_system());
  weir_strbuf_text(&text, "weir: 1\nnodes:\n  a: 1\n  y: stack(a");
  for (int i = 0; i < 20000; i++)
    weir_strbuf_text(&text, i % 3 == 0 ? ", neg(a)" : ", a");
  weir_strbuf_text(&text, ")\n");
  weir_load_options options = {0};
  weir_graph *g = NULL;
  weir_error err;
  assert_ok(load(view(&text), NULL, &options, &g, &err), &err);
  assert_int_equal(g->node_count, 2 + 6667);
  weir_graph_unref(g);
  weir_strbuf_release(&text);
}

/* Small files that would expand without end, or into much memory. */
static void test_bombs(void **state) {
  (void)state;
  weir_strbuf text;
  weir_strbuf_init(&text, weir_allocator_system());
  weir_strbuf_text(&text,
                   "weir: 1\ninputs: {x: 'f32[2]'}\nblocks:\n"
                   "  f0: {in: [x], out: x}\n");
  for (int i = 1; i < 60; i++)
    weir_strbuf_printf(&text,
                       "  f%d: {in: [x], nodes: {p: f%d(x), q: f%d(x)}, "
                       "out: q}\n",
                       i, i - 1, i - 1);
  weir_strbuf_text(&text, "nodes: {y: f59(x)}\n");
  weir_load_options options = {.max_nodes = 10000};
  weir_graph *g = NULL;
  weir_error err;
  assert_error(load(view(&text), NULL, &options, &g, &err), &err, "W1014");
  static const char *const kTexts[][2] = {
      {"r: {repeat: {i: 0..1000000000000}, nodes: {}}", "W1014"},
      {"r: {repeat: {i: 0..9}, nodes: {s: {repeat: {j: 0..100000000}, "
       "nodes: {}}}}",
       "W1014"},
      {"r: {repeat: {i: 0..9999}, nodes: {s: 'split(z, 50000)'}}\n"
       "  z: zeros([50000])",
       "W1014"},
      {"r: {repeat: {i: 5..0}, nodes: {s: neg(z)}}\n  y: 1", NULL}};
  for (size_t i = 0; i < sizeof kTexts / sizeof kTexts[0]; i++) {
    weir_strbuf_clear(&text);
    weir_strbuf_printf(&text, "weir: 1\nnodes:\n  %s\n", kTexts[i][0]);
    weir_status s = load(view(&text), NULL, &options, &g, &err);
    if (kTexts[i][1] != NULL)
      assert_error(s, &err, kTexts[i][1]);
    else
      assert_ok(s, &err);
    weir_graph_unref(g);
  }
  weir_strbuf_release(&text);
}

static void count(void *self, const weir_diag *diag) {
  (void)diag;
  ++*(uint32_t *)self;
}

/* A large file's trees are made twice. What it says is what a small one says:
 * definitions in any order, devices, nested calls; errors once and in order. */
static void test_large_bodies(void **state) {
  (void)state;
  enum { COUNT = 70000 };
  weir_strbuf text;
  weir_load_options options = {0};
  weir_graph *g = NULL;
  weir_error err;
  weir_strbuf_init(&text, weir_allocator_system());
  weir_strbuf_text(&text, "weir: 1\nnodes:\n");
  for (int i = 0; i < COUNT; i++) {
    if (i % 7 == 0 && i + 1 < COUNT) /* names the one behind it */
      weir_strbuf_printf(&text, "  n%d: task(n%d, cost_ns=%d)\n", i, i + 1, i);
    else if (i % 7 == 3)
      weir_strbuf_printf(&text, "  n%d: relu(neg(fill([2], %d)))@cpu:0\n", i,
                         i);
    else
      weir_strbuf_printf(&text, "  n%d: task(cost_ns=1, out_bytes=%d)\n", i, i);
  }
  weir_strbuf_text(&text, "outputs:\n  - n0\n  - n69999\n");
  assert_ok(load(view(&text), NULL, &options, &g, &err), &err);
  assert_int_equal(g->node_count, COUNT + 2 * (COUNT / 7));
  weir_node_id n7 = weir_graph_find_node(g, WEIR_SV_LIT("n7"));
  weir_node_id n8 = weir_graph_find_node(g, WEIR_SV_LIT("n8"));
  weir_node_id n3 = weir_graph_find_node(g, WEIR_SV_LIT("n3"));
  assert_int_equal(g->values[g->nodes[n7].inputs[0]].node, n8);
  assert_true(n8 < n7);
  assert_true(g->nodes[n3].device.size > 0);
  assert_string_equal(g->nodes[n3].op->name, "relu");
  weir_graph_unref(g);
  weir_strbuf_text(&text, "  - n1\nnodes: {}\n");
  assert_error(load(view(&text), NULL, &options, &g, &err), &err, "W1006");
  weir_strbuf_release(&text);
}

/* The first error of a file whose first node is |bad|, before |count| others.
 */
static weir_error first_error(const char *bad, int count) {
  weir_strbuf text;
  weir_load_options options = {0};
  weir_graph *g = NULL;
  weir_error err;
  weir_strbuf_init(&text, weir_allocator_system());
  weir_strbuf_printf(&text, "weir: 1\nnodes:\n  bad: %s\n", bad);
  for (int i = 0; i < count; i++)
    weir_strbuf_printf(&text, "  n%d: fill([2], 1)\n", i);
  if (load(view(&text), NULL, &options, &g, &err) == WEIR_OK)
    fail_msg("%s among %d is no error", bad, count);
  assert_null(g);
  weir_strbuf_release(&text);
  return err;
}

static void test_large_bodies_with_errors(void **state) {
  (void)state;
  static const char *const kWrong[] = {
      "task(cost_ns=",     "nothing(n0)",   "relu(gone)",
      "relu(bad)",         "relu(n0) @ x!", "matmul(n0, fill([3], 1))",
      "relu(relu(n0, 3))", "n0 +"};
  for (size_t k = 0; k < sizeof kWrong / sizeof *kWrong; k++) {
    weir_error small = first_error(kWrong[k], 2);
    weir_error large = first_error(kWrong[k], 66000);
    assert_string_equal(large.id, small.id);
    assert_string_equal(large.message, small.message);
    assert_int_equal(large.line, small.line);
    assert_int_equal(large.col, small.col);
  }
}

static void test_at_most_so_many_errors(void **state) {
  (void)state;
  weir_strbuf text;
  weir_strbuf_init(&text, weir_allocator_system());
  weir_strbuf_text(&text, "weir: 1\nnodes:\n");
  for (int i = 0; i < 100; i++)
    weir_strbuf_printf(&text, "  n%d: nothing%d(1)\n", i, i);
  uint32_t errors = 0;
  weir_diag_sink sink = {&errors, count};
  weir_load_options options = {.sink = &sink};
  weir_graph *g = NULL;
  weir_error err;
  assert_error(load(view(&text), NULL, &options, &g, &err), &err, "W1102");
  assert_int_equal(errors, 20);
  errors = 0;
  options.max_errors = 3;
  assert_error(load(view(&text), NULL, &options, &g, &err), &err, "W1102");
  assert_int_equal(errors, 3);
  weir_strbuf_release(&text);
}

static const char *getenv_of_test(void *self, const char *name) {
  (void)self;
  return strcmp(name, "DATA") == 0 ? "/data" : NULL;
}

static void test_environment(void **state) {
  (void)state;
  static const char kText[] =
      "weir: 1\nnodes: {y: 1}\n"
      "data: {root: '${env:DATA}', t: {source: '${env:NONE:-idx}'}}\n";
  weir_load_options options = {.getenv = getenv_of_test};
  weir_graph *g = NULL;
  weir_error err;
  assert_ok(load(kText, NULL, &options, &g, &err), &err);
  assert_true(weir_sv_is(weir_yaml_get(g->data, "root")->text, "/data"));
  assert_true(weir_sv_is(
      weir_yaml_get(weir_yaml_get(g->data, "t"), "source")->text, "idx"));
  weir_graph_unref(g);
  assert_refused(kText, NULL, "W1010"); /* nobody looks variables up */
  assert_refused("weir: 1\nnodes: {y: 1}\ntrain: {minimize: '${env:A}'}\n",
                 NULL, "W1010");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_params_from_outside),
      cmocka_unit_test(test_imports),
      cmocka_unit_test(test_import_depth),
      cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_long_chains),
      cmocka_unit_test(test_wide_call),
      cmocka_unit_test(test_bombs),
      cmocka_unit_test(test_large_bodies),
      cmocka_unit_test(test_large_bodies_with_errors),
      cmocka_unit_test(test_at_most_so_many_errors),
      cmocka_unit_test(test_environment)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
