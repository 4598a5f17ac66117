/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "tests/counted.h"
#include "tests/exec/generate.h"
#include "tests/exec/generated.h"
#include "tests/fuzz/fuzz.h"

/* The input chooses a valid graph (tests/exec/generate.h). It must load, and
 * run to the same end with the reference kernels and the fast ones, under a
 * limit on memory too, without a block left. */

enum { kNodes = 12, kLimitBytes = 4096 };

static int64_t now_ns(void *self) {
  struct timespec t;
  (void)self;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A run that needs more than the limit is refused; others are as without it. */
static void check_limited(const weir_env *env, const weir_graph *graph,
                          weir_tensor *const *inputs, weir_pool *pool,
                          const run_result *want) {
  char why[512] = "";
  run_result limited;
  run_way way = {"limit", pool, {.memory_limit = kLimitBytes}};
  run_once(env, graph, inputs, &way, &limited);
  if (limited.status == WEIR_OK)
    FUZZ_CHECK(run_same_bits(graph, want, &limited, why));
  else
    FUZZ_CHECK(limited.error.code == WEIR_RESOURCE_EXHAUSTED);
  run_release(&limited);
}

static void check_runs(const weir_env *env, const weir_graph *graph,
                       weir_pool *pool, const char *text) {
  char why[512] = "";
  weir_tensor *inputs[RUN_INPUTS];
  run_result want, got;
  run_way ref = {"ref", pool, {.no_fusion = true, .ref_kernels = true}};
  run_way fast = {"fast", pool, {0}};
  FUZZ_CHECK(run_inputs(env, graph, inputs));
  run_once(env, graph, inputs, &ref, &want);
  run_once(env, graph, inputs, &fast, &got);
  if (want.status != WEIR_OK || got.status != WEIR_OK ||
      !run_near(graph, &want, &got, 2e-4, why)) {
    fprintf(stderr, "%s %s %s\n%s", why, got.error.id, got.error.message, text);
    abort();
  }
  check_limited(env, graph, inputs, pool, &got);
  run_release(&want);
  run_release(&got);
  for (int i = 0; i < RUN_INPUTS; i++) weir_tensor_unref(inputs[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  weir_counted_allocator memory;
  weir_clock clock = {NULL, now_ns};
  weir_counted_allocator_init(&memory, NULL);
  weir_env env = {.alloc = &memory.base, .clock = &clock};
  weir_pool_options options = {.threads = 1, .spin_ns = -1};
  weir_pool *pool = NULL;
  weir_graph *graph = NULL;
  char why[512] = "";
  gen *g = malloc(sizeof *g);
  FUZZ_CHECK(g != NULL);
  gen_from_bytes(g, data, size, kNodes);
  FUZZ_CHECK(weir_pool_create(&env, &options, &pool, NULL) == WEIR_OK);
  if (!run_load(&env, g->text, g->used, &graph, why)) {
    fprintf(stderr, "%s\n%s", why, g->text);
    abort();
  }
  check_runs(&env, graph, pool, g->text);
  weir_graph_unref(graph);
  weir_pool_release(pool);
  FUZZ_CHECK(atomic_load(&memory.live_blocks) == 0);
  free(g);
  return 0;
}
