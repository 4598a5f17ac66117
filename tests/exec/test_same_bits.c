/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "tests/exec/generated.h"
#include "tests/exec/support.h"
#include "tests/networks.h"

/* The same bits for 1, 2 and 8 threads: every graph of graphs/, and products
 * and convolutions with long sums, where threads would like to share one. */

enum { kWays = 3, kFileBytes = 1 << 16 };

static const char kLongSums[] =
    "weir: 1\n"
    "inputs:\n"
    "  a: f32[4, 20000]\n"
    "  b: f32[64, 4096]\n"
    "  x: f32[1, 256, 12, 12]\n"
    "  y: f32[17, 96, 9, 9]\n"
    "  v: f32[300000]\n"
    "nodes:\n"
    "  p: matmul(a, var([20000, 3], init=uniform(-1, 1)))\n"
    "  q: relu(add(matmul(b, var([4096, 64], init=uniform(-1, 1))), 1))\n"
    "  r: matmul(b, b, transpose_b=true)\n"
    "  s: conv2d(x, var([8, 256, 5, 5], init=uniform(-1, 1)), pad=2)\n"
    "  t: relu(conv2d(y, var([33, 96, 3, 3], init=uniform(-1, 1)), pad=1))\n"
    "  u: reduce_sum(mul(v, v))\n"
    "  w: reduce_mean(x, axis=[0, 2, 3])\n"
    "outputs: [p, q, r, s, t, u, w]\n";

/* Optimisers over more than one block, and sums over many tensors. */
static const char kOptimisers[] =
    "weir: 1\n"
    "inputs:\n"
    "  w: f32[70001]\n"
    "  g: f32[70001]\n"
    "  s: f32[70001]\n"
    "  b: f32[3]\n"
    "nodes:\n"
    "  q: mul(s, s)\n"
    "  n: global_norm(w, b, g, b, s, b, q, b)\n"
    "  a1, a2, a3: apply_adam(w, s, q, g, 0.1, 3, n)\n"
    "  m1, m2: apply_momentum(w, s, g, 0.1, nesterov=true, l2=0.01)\n"
    "  r1, r2, r3, r4: apply_rms_prop(w, q, g, 0.1, n, s, b9, momentum=0.5, "
    "centered=true)\n"
    "  b9: mul(s, 0.1)\n"
    "  p1, p2: apply_proximal_adagrad(w, q, g, 0.1, l1=0.3)\n"
    "  e: apply_ema(w, s)\n"
    "outputs: [n, a1, a2, a3, m1, m2, r1, r2, r3, r4, p1, p2, e]\n";

/* Steps that may join the group of their gradient. */
static const char kUpdates[] =
    "weir: 1\n"
    "inputs:\n"
    "  x: f32[40, 33]\n"
    "  d: f32[40, 57]\n"
    "  w: f32[33, 57]\n"
    "  r: f32[]\n"
    "nodes:\n"
    "  lr: abs(r)\n"
    "  g: mul(w, 0.3)\n"
    "  a: apply_sgd(w, g, lr, l2=0.013)\n"
    "  p: matmul(x, d, transpose_a=true)\n"
    "  b: apply_sgd(w, p, lr)\n"
    "  c: apply_sgd(w, p, lr, l2=0.013)\n"
    "  e: sigmoid_xent(w, tanh(g))\n"
    "outputs: [a, b, c, e]\n";

typedef struct threads {
  exec_world world;
  weir_pool *pools[kWays];
  run_way ways[kWays];
} threads;

static int set_up(void **state) {
  static const int counts[kWays] = {1, 2, 8};
  static const char *const names[kWays] = {"1", "2", "8"};
  threads *t = calloc(1, sizeof *t);
  exec_world_init(&t->world);
  for (int i = 0; i < kWays; i++) {
    t->pools[i] = exec_pool(&t->world, counts[i]);
    /* Defaults are computed in the run: that is work to be shared too. */
    t->ways[i] = (run_way){names[i], t->pools[i], {.no_fold = true}};
  }
  *state = t;
  return 0;
}

static int tear_down(void **state) {
  threads *t = *state;
  for (int i = 0; i < kWays; i++) weir_pool_release(t->pools[i]);
  exec_world_check_empty(&t->world);
  free(t);
  return 0;
}

/* Whether an input's shape is known when it is fed, not before: such graphs run
 * in sessions (tests/cli/test_image.py). */
static bool is_open(const weir_graph *g) {
  for (weir_node_id id = 0; id < g->node_count; id++)
    if (g->nodes[id].op->instr == WEIR_INSTR_FEED &&
        !weir_shape_known(g->values[g->nodes[id].first_output].shape))
      return true;
  return false;
}

static void check(threads *t, const char *name, const char *text, size_t size) {
  char why[512] = "";
  weir_graph *graph = NULL;
  weir_tensor *inputs[RUN_INPUTS];
  run_result results[kWays];
  if (!run_load(&t->world.env, text, size, &graph, why))
    fail_msg("%s: %s", name, why);
  if (is_open(graph)) {
    weir_graph_unref(graph);
    return;
  }
  assert_true(run_inputs(&t->world.env, graph, inputs));
  for (int i = 0; i < kWays; i++) {
    run_once(&t->world.env, graph, inputs, &t->ways[i], &results[i]);
    if (results[i].status != WEIR_OK)
      fail_msg("%s: %s %s", name, results[i].error.id,
               results[i].error.message);
    if (!run_same_bits(graph, &results[0], &results[i], why))
      fail_msg("%s, %s threads against 1: %s", name, t->ways[i].name, why);
  }
  for (int i = 0; i < kWays; i++) run_release(&results[i]);
  for (int i = 0; i < RUN_INPUTS; i++) weir_tensor_unref(inputs[i]);
  weir_graph_unref(graph);
}

static void long_sums(void **state) {
  check(*state, "long sums", kLongSums, sizeof kLongSums - 1);
}

static void optimisers(void **state) {
  check(*state, "optimisers", kOptimisers, sizeof kOptimisers - 1);
}

static void updates_alone_or_in_groups(void **state) {
  threads *t = *state;
  for (int i = 1; i < kWays; i++) {
    t->ways[i].name = "alone";
    t->ways[i].options.no_fusion = true;
  }
  check(t, "updates", kUpdates, sizeof kUpdates - 1);
}

static void check_file(threads *t, const char *folder, const char *name) {
  char path[1024];
  char *text = malloc(kFileBytes);
  assert_non_null(text);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size_t size = fread(text, 1, kFileBytes, file);
  assert_true(size < kFileBytes && feof(file));
  fclose(file);
  check(t, name, text, size);
  free(text);
}

static void graphs(void **state) {
  char folder[512];
  const char *root = getenv("WEIR_SOURCE_ROOT");
  int files = 0;
  assert_non_null(root);
  snprintf(folder, sizeof folder, "%s/graphs", root);
  DIR *dir = opendir(folder);
  assert_non_null(dir);
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    size_t n = strlen(e->d_name);
    if (n < 10 || strcmp(e->d_name + n - 10, ".weir.yaml") != 0 ||
        is_network(e->d_name))
      continue;
    check_file(*state, folder, e->d_name);
    files++;
  }
  closedir(dir);
  assert_true(files >= 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(long_sums, set_up, tear_down),
      cmocka_unit_test_setup_teardown(optimisers, set_up, tear_down),
      cmocka_unit_test_setup_teardown(updates_alone_or_in_groups, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(graphs, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
