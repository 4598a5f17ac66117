/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

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
  assert_int_equal(count, 10);
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
             "load, gradients, train, worker, update, mesh, simplify, "
             "attention, norms, fuse"));
  assert_non_null(strstr(err.hint, "simplify"));
  assert_null(out);
  weir_graph_unref(g);
}

#define ATTENTION                                                  \
  "weir: 1\ninputs: {q: 'f32[1, 2, 4, 8]', k: 'f32[1, 2, 4, 8]', " \
  "v: 'f32[1, 2, 4, 8]'}\nnodes:\n"                                \
  "  s: mul(matmul(q, k, transpose_b=true), 0.5)\n"                \
  "  p: softmax(s)\n  y: matmul(p, v)\n"

static uint32_t count_of(const weir_graph *g, const char *op) {
  uint32_t count = 0;
  for (weir_node_id id = 0; id < g->node_count; id++)
    count += strcmp(g->nodes[id].op->name, op) == 0;
  return count;
}

/* Where a part is read elsewhere the parts stay, and the note names it; else
 * the note says when programs leave the pass out. Later passes show the node
 * too. */
static void attention_says_why_its_parts_stay(void **state) {
  static const struct {
    const char *rest, *says;
    uint32_t made;
  } kCases[] = {
      {"outputs: [y]\n", "GPUs, with --no-fusion or --trap-nan", 1},
      {"outputs: [y, p]\n", "so at y: p is an output\n", 0},
      {"  z: exp(s)\noutputs: [y, z]\n", "so at y: s has other readers\n", 0},
      {"outputs: [s]\n", NULL, 0},
  };
  (void)state;
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    weir_error err = WEIR_ERROR_INIT;
    char text[512];
    snprintf(text, sizeof text, "%s%s", ATTENTION, kCases[i].rest);
    weir_graph *g = load(text), *out = NULL;
    for (size_t k = 0; k < 3; k++) {
      static const char *const kAfter[] = {"attention", "norms", "fuse"};
      assert_ok(weir_pass_run(g, kAfter[k], &out, &err), &err);
      assert_int_equal(count_of(out, "attention"), kCases[i].made);
      weir_graph_unref(out);
    }
    weir_strbuf note;
    weir_strbuf_init(&note, g->alloc);
    assert_ok(weir_pass_note(g, "attention", &note, &err), &err);
    assert_ok(weir_strbuf_status(&note, &err), &err);
    if (kCases[i].says == NULL)
      assert_int_equal(note.size, 0);
    else
      assert_non_null(strstr(note.data, kCases[i].says));
    weir_strbuf_clear(&note);
    assert_ok(weir_pass_note(g, "fuse", &note, &err), &err);
    assert_int_equal(note.size, 0);
    weir_strbuf_release(&note);
    weir_graph_unref(g);
  }
}

/* With the k-th allocation failing, until all is there. */
static void attention_without_memory(void **state) {
  (void)state;
  for (uint64_t k = 1;; k++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_counted_allocator memory;
    weir_counted_allocator_init(&memory, NULL);
    weir_env env = *weir_env_system();
    env.alloc = &memory.base;
    weir_graph *g = NULL, *out = NULL;
    weir_load_options options = {.registry = weir_builtin_registry()};
    assert_ok(
        weir_graph_load_text(&env, weir_sv_from(ATTENTION "outputs: [y]\n"),
                             "g", &options, &g, &err),
        &err);
    weir_strbuf note;
    weir_strbuf_init(&note, &memory.base);
    memory.fail_at = atomic_load(&memory.calls) + k;
    weir_status s = weir_pass_run(g, "norms", &out, &err);
    if (s == WEIR_OK) s = weir_pass_note(g, "attention", &note, &err);
    if (s == WEIR_OK) s = weir_strbuf_status(&note, &err);
    weir_strbuf_release(&note);
    weir_graph_unref(out);
    weir_graph_unref(g);
    assert_int_equal(atomic_load(&memory.live_blocks), 0);
    if (s == WEIR_OK) break;
    assert_error(s, &err, "W6001");
    assert_true(k < 1000);
  }
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
      cmocka_unit_test(attention_says_why_its_parts_stay),
      cmocka_unit_test(attention_without_memory),
      cmocka_unit_test(bodies_are_hashed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
