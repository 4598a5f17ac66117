/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/compile/compile.h"
#include "tests/exec/generate.h"
#include "tests/exec/generated.h"
#include "tests/exec/support.h"

/* Random graphs: the fast kernels, fused, agree with the reference kernels;
 * the same bits for any number of threads and on the devices of a cluster, with
 * and without fusion and layouts. Arguments: how many graphs, the first seed,
 * how many nodes. */

enum { kWays = 8, kFirstOtherKernels = 6 };

static const double kTolerance = 2e-4; /* rounding through some 30 nodes */

typedef struct suite {
  exec_world world;
  weir_pool *pools[3]; /* 1, 2 and 8 threads */
  run_way ways[kWays];
  uint64_t first, count;
  uint32_t nodes;
} suite;

static void open_suite(suite *s) {
  static const int threads[] = {1, 2, 8};
  exec_world_init(&s->world);
  for (int i = 0; i < 3; i++) s->pools[i] = exec_pool(&s->world, threads[i]);
  s->ways[0] = (run_way){
      "reference", s->pools[0], {.no_fusion = true, .ref_kernels = true}};
  s->ways[1] = (run_way){"1 thread", s->pools[0], {0}};
  s->ways[2] = (run_way){"2 threads", s->pools[1], {0}};
  s->ways[3] = (run_way){"8 threads", s->pools[2], {0}};
  s->ways[4] =
      (run_way){"in turn on 4 devices", s->pools[0], {0}, "round_robin", 0};
  s->ways[5] = (run_way){"drawn from 4 devices", s->pools[2], {0}, "random", 0};
  s->ways[kFirstOtherKernels] =
      (run_way){"no fusion", s->pools[1], {.no_fusion = true}};
  s->ways[7] = (run_way){"no layouts", s->pools[1], {.no_layout = true}};
}

static void close_suite(suite *s) {
  for (int i = 0; i < 3; i++) weir_pool_release(s->pools[i]);
  exec_world_check_empty(&s->world);
}

/* Without fusion or layouts a convolution may get another kernel, which sums in
 * another order; nothing else changes a bit. */
static bool convolves(const weir_graph *graph) {
  for (uint32_t i = 0; i < graph->node_count; i++)
    if (strcmp(graph->nodes[i].op->name, "conv2d") == 0) return true;
  return false;
}

static bool compare(const suite *s, const weir_graph *graph,
                    const run_result *results, char *why) {
  char text[512] = "";
  if (results[1].status != WEIR_OK) {
    snprintf(why, 600, "%s %.300s", results[1].error.id,
             results[1].error.message);
    return false;
  }
  if (!run_near(graph, &results[0], &results[1], kTolerance, text)) {
    snprintf(why, 600, "against the reference: %s", text);
    return false;
  }
  for (int i = 2; i < kWays; i++) {
    bool same = i < kFirstOtherKernels || !convolves(graph);
    if (same ? run_same_bits(graph, &results[1], &results[i], text)
             : run_near(graph, &results[1], &results[i], kTolerance, text))
      continue;
    snprintf(why, 600, "%s against 1 thread: %s", s->ways[i].name, text);
    return false;
  }
  return true;
}

static bool check_graph(suite *s, const weir_graph *graph, char *why) {
  weir_tensor *inputs[RUN_INPUTS];
  run_result results[kWays];
  assert_true(run_inputs(&s->world.env, graph, inputs));
  for (int i = 0; i < kWays; i++)
    run_once(&s->world.env, graph, inputs, &s->ways[i], &results[i]);
  bool ok = compare(s, graph, results, why);
  for (int i = 0; i < kWays; i++) run_release(&results[i]);
  for (int i = 0; i < RUN_INPUTS; i++) weir_tensor_unref(inputs[i]);
  return ok;
}

static bool check_seed(suite *s, uint64_t seed) {
  char why[600] = "";
  gen *g = malloc(sizeof *g);
  weir_graph *graph = NULL;
  s->ways[5].seed = seed;
  assert_non_null(g);
  gen_from_seed(g, seed, s->nodes);
  bool ok = run_load(&s->world.env, g->text, g->used, &graph, why) &&
            check_graph(s, graph, why);
  if (!ok)
    print_error("seed %llu: %s\n%s\n", (unsigned long long)seed, why, g->text);
  weir_graph_unref(graph);
  free(g);
  return ok;
}

static void test_generated(void **state) {
  suite *s = *state;
  uint64_t failed = 0;
  open_suite(s);
  for (uint64_t i = 0; i < s->count && failed < 5; i++)
    failed += !check_seed(s, s->first + i);
  close_suite(s);
  assert_int_equal(failed, 0);
}

int main(int argc, char **argv) {
  static suite s;
  s.count = argc > 1 ? strtoull(argv[1], NULL, 10) : 20;
  s.first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  s.nodes = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 24;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(test_generated, &s)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
