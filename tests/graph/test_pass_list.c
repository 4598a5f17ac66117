/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernel.h"
#include "runtime/base/env_system.h"
#include "runtime/graph/hash.h"
#include "runtime/graph/load/load.h"
#include "runtime/graph/pass/pass_def.h"
#include "tests/check.h"

/* The list of passes, and the one to copy, which is not in it. */

extern const weir_pass_def weir_pass_null;

static weir_graph *load(const char *text) {
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *g = NULL;
  weir_load_options options = {.registry = weir_builtin_registry()};
  assert_ok(weir_graph_load_text(weir_env_system(), weir_sv_from(text), "g",
                                 &options, &g, &err),
            &err);
  return g;
}

#define MLP                                                     \
  "weir: 1\ninputs: {x: 'f32[2, 3]'}\noutputs: [y]\n"           \
  "nodes:\n  w: var([3, 4], init=zeros())\n  h: matmul(x, w)\n" \
  "  y: relu(h)\n  z: exp(h)\n"

static void the_null_pass_makes_the_same_graph(void **state) {
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *g = load(MLP), *same = NULL;
  (void)state;
  assert_ok(weir_pass_null.run(g, &same, &err), &err);
  assert_int_equal(weir_graph_hash(g), weir_graph_hash(same));
  assert_int_equal(g->node_count, same->node_count);
  weir_graph_unref(same);
  weir_graph_unref(g);
}

/* Each pass runs on a graph that has the section it needs, and names the
 * missing section on one that has not. */
static void each_pass_runs(void **state) {
  weir_graph *g = load(MLP);
  size_t count = 0;
  (void)state;
  for (const weir_pass_def *p; (p = weir_pass_at(count)) != NULL; count++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_graph *out = NULL;
    weir_status s = weir_pass_run(g, p->name, &out, &err);
    assert_true(strlen(p->summary) > 0);
    assert_string_not_equal(p->name, "null");
    if (p->needs == NULL) {
      assert_ok(s, &err);
      assert_non_null(out);
    } else {
      assert_string_equal(err.id, "W0002");
      assert_non_null(strstr(err.message, p->needs));
      assert_null(out);
    }
    weir_graph_unref(out);
  }
  assert_int_equal(count, 9);
  weir_graph_unref(g);
}

static void an_unknown_pass_is_refused(void **state) {
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *g = load(MLP), *out = NULL;
  (void)state;
  assert_int_equal(weir_pass_run(g, "simplfy", &out, &err),
                   WEIR_INVALID_ARGUMENT);
  assert_string_equal(err.id, "W0002");
  assert_non_null(
      strstr(err.message,
             "load, gradients, train, worker, update, mesh, simplify, norms, "
             "fuse"));
  assert_non_null(strstr(err.hint, "simplify"));
  assert_null(out);
  weir_graph_unref(g);
}

#define SCAN(op)                                               \
  "weir: 1\ninputs: {x: 'f32[4, 3]'}\noutputs: {ys: run.ys}\n" \
  "nodes:\n  run:\n    scan:\n      over: {s: x}\n"            \
  "      carry: {h: 'zeros([3])'}\n"                           \
  "      nodes: {n: " op                                       \
  "(s), m: 'add(h, n)'}\n"                                     \
  "      next: {h: m}\n      stack: {ys: m}\n"

/* Graphs that differ inside a body alone are not the same graph. */
static void bodies_are_hashed(void **state) {
  weir_graph *a = load(SCAN("exp")), *b = load(SCAN("tanh")),
             *again = load(SCAN("exp"));
  (void)state;
  assert_int_not_equal(weir_graph_hash(a), weir_graph_hash(b));
  assert_int_equal(weir_graph_hash(a), weir_graph_hash(again));
  weir_graph_unref(a);
  weir_graph_unref(b);
  weir_graph_unref(again);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_null_pass_makes_the_same_graph),
      cmocka_unit_test(each_pass_runs),
      cmocka_unit_test(an_unknown_pass_is_refused),
      cmocka_unit_test(bodies_are_hashed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
