/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "runtime/graph/pass/cut.h"
#include "runtime/graph/pass/pass_def.h"
#include "tests/exec/generated.h"
#include "tests/exec/support.h"

/* Convolutions that take the batch_norm behind them along: which do, which do
 * not, and that the values stay. */

#define HEAD                                      \
  "weir: 1\n"                                     \
  "inputs: {x: 'f32[2, 6, 7, 5]'}\n"              \
  "nodes:\n"                                      \
  "  w: var([4, 6, 3, 3], init=uniform(-1, 1))\n" \
  "  scale: var([4], init=uniform(-2, 2))\n"      \
  "  bias: var([4], init=uniform(-1, 1))\n"       \
  "  mean: state([4], init=uniform(-1, 1))\n"     \
  "  v: state([4], init=uniform(0.2, 2))\n"
#define NORM "  y: batch_norm(c, scale, bias, mean, v, epsilon=0.01)\n"

typedef struct norm_case {
  const char *name, *text;
  uint32_t convs, norms; /* that run for x, after folding */
} norm_case;

static const norm_case kCases[] = {
    {"plain", HEAD "  c: conv2d(x, w, pad=1)\n" NORM "outputs: [y]\n", 1, 0},
    {"bias and activation",
     HEAD "  b: var([4], init=uniform(-1, 1))\n"
          "  c: conv2d(x, w, b, stride=2)\n" NORM
          "  z: relu(y)\noutputs: [z]\n",
     1, 0},
    {"groups",
     HEAD "  u: var([4, 3, 1, 1], init=uniform(-1, 1))\n"
          "  c: conv2d(x, u, groups=2)\n" NORM "outputs: [y]\n",
     1, 0},
    {"a second layer",
     HEAD "  c: conv2d(x, w)\n" NORM
          "  u: var([4, 4, 1, 1], init=uniform(-1, 1))\n"
          "  d: conv2d(relu(y), u)\n"
          "  z: batch_norm(d, bias, scale, mean, v)\noutputs: [z]\n",
     2, 0},
    {"the convolution is wanted",
     HEAD "  c: conv2d(x, w)\n" NORM "outputs: [y, c]\n", 1, 1},
    {"the convolution has another reader",
     HEAD "  c: conv2d(x, w)\n" NORM "  z: add(y, c)\noutputs: [z]\n", 1, 1},
    {"a control edge from the convolution",
     HEAD "  c: conv2d(x, w)\n" NORM
          "  z: {op: relu, in: [y], after: [c]}\noutputs: [z]\n",
     1, 1},
    {"weights that are computed",
     HEAD "  c: conv2d(x, mul(w, reduce_sum(x)))\n" NORM "outputs: [y]\n", 1,
     1},
    {"a mean that is assigned",
     HEAD "  c: conv2d(x, w)\n" NORM
          "  m: assign(mean, mul(mean, 0.5))\noutputs: [y, m]\n",
     1, 1},
    {"a mean that is assigned, and not in this run",
     HEAD "  c: conv2d(x, w)\n" NORM
          "  m: assign(mean, mul(mean, 0.5))\noutputs: [y]\n",
     1, 1},
    {"scale as an input",
     HEAD "  c: conv2d(x, w)\n"
          "  s: reduce_sum(x, axis=[0, 2, 3])\n"
          "  y: batch_norm(c, slice(s, [0], [4]), bias, mean, v)\n"
          "outputs: [y]\n",
     1, 1},
    {"no convolution",
     HEAD "  c: mul(slice(x, [0], [4], axis=[1]), 2)\n" NORM "outputs: [y]\n",
     0, 1},
};

static weir_graph *load(exec_world *world, const norm_case *c) {
  char why[512] = "";
  weir_graph *graph = NULL;
  if (!run_load(&world->env, c->text, strlen(c->text), &graph, why))
    fail_msg("%s: %s", c->name, why);
  return graph;
}

/* Nodes of |op| whose value depends on an input. */
static uint32_t count_runs(const weir_graph *g, const char *op) {
  bool fed[256] = {false};
  uint32_t count = 0;
  assert_true(g->value_count <= 256);
  for (weir_node_id id = 0; id < g->node_count; id++) {
    const weir_node *node = &g->nodes[id];
    bool runs = strcmp(node->op->name, "input") == 0;
    for (uint32_t i = 0; i < node->input_count; i++)
      runs |= node->inputs[i] != WEIR_NO_VALUE && fed[node->inputs[i]];
    for (uint32_t k = 0; k < node->output_count; k++)
      fed[node->first_output + k] = runs;
    count += runs && strcmp(node->op->name, op) == 0;
  }
  return count;
}

static void folded_or_not(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    exec_world world;
    weir_error err = WEIR_ERROR_INIT;
    weir_graph *after = NULL;
    exec_world_init(&world);
    weir_graph *g = load(&world, &kCases[i]);
    assert_ok(weir_pass_run(g, "norms", &after, &err), &err);
    if (count_runs(after, "conv2d") != kCases[i].convs ||
        count_runs(after, "batch_norm") != kCases[i].norms)
      fail_msg("%s: %u convolutions, %u batch norms", kCases[i].name,
               (unsigned)count_runs(after, "conv2d"),
               (unsigned)count_runs(after, "batch_norm"));
    weir_graph_unref(after);
    weir_graph_unref(g);
    exec_world_check_empty(&world);
  }
}

static void the_values_stay(void **state) {
  (void)state;
  exec_world world;
  exec_world_init(&world);
  weir_pool *pool = exec_pool(&world, 1);
  run_way ways[2] = {{"apart", pool, {.no_fusion = true, .ref_kernels = true}},
                     {"folded", pool, {0}}};
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    char why[512] = "";
    weir_tensor *inputs[RUN_INPUTS];
    run_result results[2];
    weir_graph *g = load(&world, &kCases[i]);
    assert_true(run_inputs(&world.env, g, inputs));
    for (int k = 0; k < 2; k++)
      run_once(&world.env, g, inputs, &ways[k], &results[k]);
    if (!run_near(g, &results[0], &results[1], 1e-5, why))
      fail_msg("%s: %s", kCases[i].name, why);
    for (int k = 0; k < 2; k++) run_release(&results[k]);
    for (int k = 0; k < RUN_INPUTS; k++) weir_tensor_unref(inputs[k]);
    weir_graph_unref(g);
  }
  weir_pool_release(pool);
  exec_world_check_empty(&world);
}

/* The node that stays has the batch_norm's name and fetches the same value. */
static void names_lead_to_the_convolution(void **state) {
  (void)state;
  exec_world world;
  weir_error err = WEIR_ERROR_INIT;
  weir_cut *cut = NULL;
  exec_world_init(&world);
  weir_graph *g = load(&world, &kCases[1]);
  weir_value_id y = weir_graph_find_value(g, WEIR_SV_LIT("y"));
  weir_value_id c = weir_graph_find_value(g, WEIR_SV_LIT("c"));
  weir_cut_request request = {.graph = g, .values = &y, .value_count = 1};
  assert_ok(weir_graph_cut(&request, &cut, &err), &err);
  const weir_value *value = &cut->graph->values[cut->fetches[0]];
  assert_string_equal(cut->graph->nodes[value->node].op->name, "conv2d");
  assert_true(weir_sv_is(cut->graph->nodes[value->node].name, "y"));
  assert_int_equal(cut->values[y], cut->fetches[0]);
  assert_int_equal(cut->values[c], WEIR_NO_VALUE);
  weir_cut_release(cut);
  weir_graph_unref(g);
  exec_world_check_empty(&world);
}

static void no_memory(void **state) {
  (void)state;
  for (int forever = 0; forever < 2; forever++) {
    weir_status s = WEIR_UNKNOWN;
    for (uint64_t k = 1; s != WEIR_OK; k = counted_next(k)) {
      exec_world world;
      weir_error err = WEIR_ERROR_INIT;
      weir_cut *cut = NULL;
      exec_world_init(&world);
      weir_graph *g = load(&world, &kCases[3]);
      weir_cut_request request = {
          .graph = g, .values = &g->outputs[0].value, .value_count = 1};
      world.memory.fail_at = atomic_load(&world.memory.calls) + k;
      world.memory.fail_forever = forever;
      s = weir_graph_cut(&request, &cut, &err);
      if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
      weir_cut_release(cut);
      weir_graph_unref(g);
      exec_world_check_empty(&world);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(folded_or_not),
      cmocka_unit_test(the_values_stay),
      cmocka_unit_test(names_lead_to_the_convolution),
      cmocka_unit_test(no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
