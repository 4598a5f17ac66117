/* SPDX-License-Identifier: Apache-2.0
 * Values set by their path in the file. */
#include <stdio.h>
#include <string.h>

#include "kernels/kernel.h"
#include "runtime/base/env_system.h"
#include "runtime/graph/load/load.h"
#include "tests/check.h"

static const char kText[] =
    "weir: 1\n"
    "params: {n: 2}\n"
    "x-note: {a.b: 3}\n"
    "inputs: {x: 'f32[n]'}\n"
    "nodes:\n"
    "  shared: &body {op: add, in: [x, 1]}\n"
    "  other: *body\n"
    "outputs: [shared, other]\n";

typedef struct world {
  weir_env env;
  weir_load_options options;
  weir_graph *graph;
  weir_error err;
} world;

static weir_status load(world *w, const weir_allocator *alloc,
                        const weir_param_value *set, size_t count) {
  w->env = *weir_env_system();
  if (alloc != NULL) w->env.alloc = alloc;
  w->err = (weir_error)WEIR_ERROR_INIT;
  w->options = (weir_load_options){.registry = weir_builtin_registry(),
                                   .overrides = set,
                                   .override_count = count};
  return weir_graph_load_text(&w->env, weir_sv_from(kText), "t", &w->options,
                              &w->graph, &w->err);
}

static const weir_node *node(const world *w, const char *name) {
  weir_node_id id = weir_graph_find_node(w->graph, weir_sv_from(name));
  assert_true(id < w->graph->node_count);
  return &w->graph->nodes[id];
}

static void replaces_and_adds(void **state) {
  (void)state;
  world w;
  const weir_param_value set[] = {
      {WEIR_SV_LIT("nodes.shared.op"), WEIR_SV_LIT("sub")},
      {WEIR_SV_LIT("nodes.shared.in.1"), WEIR_SV_LIT("2")},
      {WEIR_SV_LIT("nodes.shared.op"), WEIR_SV_LIT("mul")}, /* wins */
      {WEIR_SV_LIT("nodes.more"), WEIR_SV_LIT("ones([a])")},
      {WEIR_SV_LIT("outputs"), WEIR_SV_LIT("[shared, more]")},
      {WEIR_SV_LIT("params"), WEIR_SV_LIT("{n: 5, a: 7}")},
      {WEIR_SV_LIT("data.train.source"), WEIR_SV_LIT("npy")},
  };
  assert_ok(load(&w, NULL, set, sizeof set / sizeof *set), &w.err);
  assert_string_equal(node(&w, "shared")->op->name, "mul");
  assert_string_equal(node(&w, "other")->op->name, "add"); /* was shared */
  char type[64];
  weir_graph_type_text(w.graph, node(&w, "more")->first_output, type,
                       sizeof type);
  assert_string_equal(type, "f32[7]");
  assert_non_null(w.graph->data);
  weir_graph_unref(w.graph);
}

static void refuse(const char *path, const char *value, const char *id,
                   const char *says) {
  world w;
  weir_param_value set = {weir_sv_from(path), weir_sv_from(value)};
  weir_status s = load(&w, NULL, &set, 1);
  assert_int_not_equal(s, WEIR_OK);
  assert_string_equal(w.err.id, id);
  if (strstr(w.err.message, says) == NULL) fail_msg("%s", w.err.message);
}

static void refuses(void **state) {
  (void)state;
  refuse("nodes..op", "add", "W1137", "is an empty key");
  refuse("", "add", "W1137", "is an empty key");
  refuse("nodes.", "add", "W1137", "is an empty key");
  refuse("weir.x", "1", "W1137", "has no keys");
  refuse("x-note.a\\.b.c", "1", "W1137", "'c' stands below");
  refuse("outputs.2", "x", "W1137", "'2' is no place in the list");
  refuse("outputs.-1", "x", "W1137", "is no place in the list");
  refuse("outputs.x", "x", "W1137", "is no place in the list");
  refuse("params.n", "[1", "W1001", "is not closed");
  refuse("params.n", "", "W1008", "no YAML value");
  refuse("params.n", "{k: 1}", "W1010", "a param is");
  refuse("weir", "2", "W1012", "version 1");
  refuse("nodez.y", "1", "W1009", "unknown key 'nodez'");
  char deep[200] = "params";
  for (int i = 0; i < 64; i++) strcat(deep, ".a");
  refuse(deep, "1", "W1137", "is nested too deeply");
}

static void names_the_path(void **state) {
  (void)state;
  world w;
  weir_param_value set = {WEIR_SV_LIT("inputs.x"), WEIR_SV_LIT("f31[n]")};
  assert_int_not_equal(load(&w, NULL, &set, 1), WEIR_OK);
  assert_string_equal(w.err.id, "W1112");
  assert_string_equal(w.err.file, "--set inputs.x");
}

static void without_memory(void **state) {
  (void)state;
  const weir_param_value set[] = {
      {WEIR_SV_LIT("nodes.shared.in.1"), WEIR_SV_LIT("2")},
      {WEIR_SV_LIT("data.train.source"), WEIR_SV_LIT("npy")}};
  for (int for_ever = 0; for_ever < 2; for_ever++)
    for (uint64_t k = 1;; k++) {
      weir_counted_allocator memory;
      world w;
      weir_counted_allocator_init(&memory, NULL);
      memory.fail_at = k;
      memory.fail_forever = for_ever;
      weir_status s = load(&w, &memory.base, set, 2);
      if (s == WEIR_OK) weir_graph_unref(w.graph);
      assert_int_equal(atomic_load(&memory.live_blocks), 0);
      if (s == WEIR_OK) break;
      assert_string_equal(w.err.id, "W6001");
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(replaces_and_adds), cmocka_unit_test(refuses),
      cmocka_unit_test(names_the_path), cmocka_unit_test(without_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
