/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernels/kernel.h"
#include "runtime/base/env_system.h"
#include "runtime/graph/goal.h"
#include "runtime/graph/load/load.h"
#include "runtime/graph/pass/updates.h"
#include "tests/check.h"

/* The goal of a graph, the shapes of its inputs, and the graph of a program of
 * it. */

static weir_graph *load(const char *text) {
  weir_load_options o = {.registry = weir_builtin_registry()};
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *g = NULL;
  assert_ok(weir_graph_load_text(weir_env_system(), weir_sv_from(text),
                                 "g.yaml", &o, &g, &err),
            &err);
  return g;
}

static const char kOpen[] =
    "weir: 1\n"
    "dims: {n: null, m: null}\n"
    "inputs:\n"
    "  x: 'f32[n, 8]'\n"
    "  y: 'f32[n, m]'\n"
    "  z: 'f32[m] = fill([3], 1.0)'\n"
    "nodes: {a: 'matmul(x, ones([8, 2]))', b: 'add(y, z)'}\n"
    "outputs: [a, b]\n";

static void expect(const weir_graph *g, const weir_shape *given,
                   int64_t nominal, const char *want) {
  weir_error err = WEIR_ERROR_INIT;
  weir_shape shapes[3];
  char got[200] = "";
  assert_ok(weir_graph_input_shapes(g, given, nominal, shapes, &err), &err);
  for (uint32_t i = 0; i < g->input_count; i++) {
    char one[64] = "?";
    if (shapes[i].rank != WEIR_RANK_UNKNOWN)
      weir_shape_print(&shapes[i], NULL, NULL, one, sizeof one);
    strcat(strcat(got, one), " ");
  }
  assert_string_equal(got, want);
}

/* Given shapes count first, then defaults, then the nominal size. */
static void shapes_follow_from_each_other(void **state) {
  (void)state;
  weir_graph *g = load(kOpen);
  weir_shape given[3] = {{.rank = WEIR_RANK_UNKNOWN},
                         {.rank = WEIR_RANK_UNKNOWN},
                         {.rank = WEIR_RANK_UNKNOWN}};
  expect(g, NULL, 0, "? ? [3] ");
  expect(g, NULL, 64, "[64, 8] [64, 3] [3] ");
  given[0] = weir_shape_of(2, (int64_t[]){5, 8});
  expect(g, given, 0, "[5, 8] [5, 3] [3] ");
  given[2] = weir_shape_of(1, (int64_t[]){7});
  expect(g, given, 64, "[5, 8] [5, 7] [7] ");
  weir_graph_unref(g);
}

static const weir_node *find(const weir_graph *g, const char *name) {
  weir_node_id id = weir_graph_find_node(g, weir_sv_from(name));
  return id == UINT32_MAX ? NULL : &g->nodes[id];
}

static weir_cut *cut_goal(const weir_graph *g, bool inference) {
  weir_error err = WEIR_ERROR_INIT;
  weir_goal *goal = NULL;
  weir_cut *cut = NULL;
  weir_shape shapes[4];
  assert_ok(weir_goal_create(g, inference, &goal, &err), &err);
  assert_ok(weir_graph_input_shapes(goal->graph, NULL, 64, shapes, &err), &err);
  assert_ok(weir_goal_cut(goal, shapes, &cut, &err), &err);
  weir_goal_release(goal);
  return cut;
}

/* Defaults are nobody's: an input is an input whether it has one or not. */
static void all_inputs_are_fed(void **state) {
  (void)state;
  weir_graph *g = load(kOpen);
  weir_cut *one = cut_goal(g, false), *two = cut_goal(g, true);
  assert_non_null(find(one->graph, "z"));
  assert_int_equal(find(one->graph, "z")->input_count, 0);
  assert_null(find(one->graph, "z/init"));
  assert_int_equal(one->fetch_count, 2);
  assert_int_equal(weir_cut_hash(one->graph), weir_cut_hash(two->graph));
  weir_cut_release(one);
  weir_cut_release(two);
  weir_graph_unref(g);
}

/* A step fetches loss, rate and watched values; its updates are targets. */
static void a_step_is_more_than_its_loss(void **state) {
  (void)state;
  weir_graph *g = load(
      "weir: 1\n"
      "inputs: {x: 'f32[4, 3]', t: 'f32[4, 1]'}\n"
      "nodes:\n"
      "  w: var([3, 1], init=zeros())\n"
      "  y: matmul(x, w)\n"
      "  loss: mse(y, t)\n"
      "  far: reduce_max(abs(sub(y, t)))\n"
      "outputs: [y]\n"
      "data: {train: {source: memory, batch: 4}}\n"
      "train:\n"
      "  minimize: loss\n"
      "  optimizer: sgd(lr=0.1)\n"
      "  eval: {data: train, metrics: [far], every: 10}\n"
      "  summary: {scalars: [loss], every: 10}\n");
  weir_cut *step = cut_goal(g, false), *outputs = cut_goal(g, true);
  assert_int_equal(step->fetch_count, 4); /* loss, rate, far, loss */
  assert_int_equal(step->fetches[0], step->fetches[3]);
  assert_true(step->target_count >= 1);
  assert_non_null(find(step->graph, "far"));
  assert_null(find(outputs->graph, "far"));
  assert_int_equal(outputs->fetch_count, 1);
  assert_int_equal(outputs->target_count, 0);
  assert_true(weir_cut_hash(step->graph) != weir_cut_hash(outputs->graph));
  weir_cut_release(step);
  weir_cut_release(outputs);
  weir_graph_unref(g);
}

/* The inputs of a state's update are computed; groups count in the hash. */
static void updates_are_targets(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *g = load(
      "weir: 1\n"
      "inputs: {x: 'f32[4] = 1'}\n"
      "nodes:\n"
      "  s: state([4])\n"
      "  y: tanh(add(s, x))\n"
      "  z: neg(x)\n"
      "update: {s: y}\n"
      "outputs: [y, z]\n");
  weir_value_id y = g->outputs[0].value;
  bool fed[1] = {true};
  weir_cut_request r = {.graph = g, .values = &y, .value_count = 1, .fed = fed};
  weir_cut *with = NULL, *without = NULL, *plain = NULL;
  assert_ok(weir_graph_cut(&r, &with, &err), &err);
  r.no_updates = true;
  assert_ok(weir_graph_cut(&r, &without, &err), &err);
  assert_int_equal(with->target_count, 1);
  assert_int_equal(without->target_count, 0);
  assert_null(find(with->graph, "z"));
  r.no_fusion = true;
  assert_ok(weir_graph_cut(&r, &plain, &err), &err);
  assert_int_equal(plain->graph->node_count, without->graph->node_count);
  assert_true(weir_cut_hash(plain->graph) != weir_cut_hash(without->graph));
  weir_cut_release(with);
  weir_cut_release(without);
  weir_cut_release(plain);
  weir_graph_unref(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shapes_follow_from_each_other),
      cmocka_unit_test(all_inputs_are_fed),
      cmocka_unit_test(a_step_is_more_than_its_loss),
      cmocka_unit_test(updates_are_targets),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
