/* SPDX-License-Identifier: Apache-2.0 */

/* The executor's cost: a chain and a row of 10,000 scalar adds without
 * fusion, and one bound step of one node. Prints ns per node and per step. */

#include <stdlib.h>

#include "runtime/exec/session/binding.h"
#include "tests/exec/maker.h"

enum { kNodes = 10000 };

typedef struct shape_of_work {
  const char *name;
  int nodes;
  bool chain;
} shape_of_work;

static weir_graph *make(const shape_of_work *work, weir_value_id *x,
                        weir_value_id *out) {
  maker m;
  begin(&m, weir_allocator_system());
  weir_value_id a = input(&m, "x", WEIR_F32, 0, NULL, WEIR_NO_VALUE);
  weir_value_id b = input(&m, "b", WEIR_F32, 0, NULL, WEIR_NO_VALUE);
  x[0] = a;
  x[1] = b;
  char *names = malloc((size_t)work->nodes * 16);
  for (int i = 0; i < work->nodes; i++) {
    char *name = names + i * 16;
    snprintf(name, 16, "n%d", i);
    out[i] = NODE(&m, name, "add", work->chain && i > 0 ? out[i - 1] : a, b);
  }
  return finish(&m); /* names live as long as the process */
}

static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static void measure(weir_pool *pool, const exec_world *world,
                    const shape_of_work *work) {
  static weir_value_id out[kNodes];
  static weir_exec_fetch fetch[kNodes];
  static int64_t ns[301];
  weir_error err = WEIR_ERROR_INIT;
  weir_value_id x[2];
  weir_exec_session *session = NULL;
  weir_binding *binding = NULL;
  weir_graph *g = make(work, x, out);
  weir_session_options options = {.no_fusion = true, .no_fold = true};
  weir_tensor *one = f32_scalar(weir_allocator_system(), 1);
  weir_exec_feed feeds[] = {{x[0], one}, {x[1], one}};
  size_t count = work->chain ? 1 : (size_t)work->nodes;
  for (size_t i = 0; i < count; i++)
    fetch[i] =
        (weir_exec_fetch){.value = work->chain ? out[work->nodes - 1] : out[i]};
  assert_ok(
      weir_exec_session_create(&world->env, pool, g, &options, &session, &err),
      &err);
  int64_t start = exec_now_ns(NULL);
  weir_exec_request request = {
      .feeds = feeds, .feed_count = 2, .fetches = fetch, .fetch_count = count};
  assert_ok(weir_exec_bind(session, &request, &binding, &err), &err);
  int64_t compile_ns = exec_now_ns(NULL) - start;
  int inner = work->nodes == 1 ? 1000 : 1;
  for (int r = 0; r < 301; r++) {
    start = exec_now_ns(NULL);
    for (int k = 0; k < inner; k++)
      assert_ok(weir_binding_run(binding, NULL, &err), &err);
    ns[r] = (exec_now_ns(NULL) - start) / inner;
  }
  qsort(ns, 301, sizeof *ns, by_value);
  weir_program_stats stats = weir_binding_stats(binding);
  printf(
      "%-6s %6d nodes  step %9.2f us  %7.2f ns/node  (min %.2f)  arena %zu "
      "of %zu bytes  compile %.2f ms\n",
      work->name, work->nodes, (double)ns[150] / 1e3,
      (double)ns[150] / work->nodes, (double)ns[0] / work->nodes,
      stats.arena_bytes, stats.arena_bound_bytes, (double)compile_ns / 1e6);
  weir_binding_release(binding);
  for (size_t i = 0; i < count; i++) weir_tensor_unref(fetch[i].tensor);
  weir_tensor_unref(one);
  weir_exec_session_release(session);
  weir_graph_unref(g);
}

int main(int argc, char **argv) {
  exec_world world;
  exec_world_init(&world);
  world.env.alloc = weir_allocator_system();
  weir_pool *pool = exec_pool(&world, argc > 1 ? atoi(argv[1]) : 2);
  measure(pool, &world, &(shape_of_work){"chain", kNodes, true});
  measure(pool, &world, &(shape_of_work){"wide", kNodes, false});
  measure(pool, &world, &(shape_of_work){"one", 1, false});
  weir_pool_release(pool);
  return 0;
}
