/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "kernels/kernel.h"
#include "runtime/base/env_system.h"
#include "runtime/exec/session/session.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/graph/load/load.h"
#include "runtime/graph/train/train.h"
#include "runtime/graph/train/train_graph.h"
#include "runtime/graph/train/train_spec.h"
#include "tests/exec/support.h"

/* `gradients(loss, [w, ...])` as a node: worked out by hand. */

static const char kGraph[] =
    "weir: 1\n"
    "nodes:\n"
    "  x: const([1.0, 1.0, 2.0])\n"
    "  w: var([3], init=const([1.0, 2.0, 3.0]))\n"
    "  b: var([3], init=zeros())\n"
    "  far: var([2])\n"
    "  loss: reduce_sum(mul(square(w), add(mul(w, x), b)))\n"
    "  dw, db: gradients(loss, [w, b])\n"
    "  ddw: gradients(reduce_sum(square(dw)), [w])\n"
    "  dx: gradients(loss, x)\n"
    "  h: mul(w, x)\n"
    "  dh: gradients(reduce_sum(square(h)), [h])\n"
    "  none: gradients(loss, [far])\n"
    "  penalty: add(loss, reduce_sum(square(db)))\n"
    "outputs: [dw, db, ddw, dx, dh, none]\n"
    "train: {minimize: penalty, optimizer: sgd(lr=0.5)}\n";

static weir_graph *load(const weir_allocator *alloc, const char *text) {
  weir_error err = WEIR_ERROR_INIT;
  weir_load_options options = {.registry = weir_builtin_registry()};
  weir_env env = {.alloc = alloc};
  weir_graph *g = NULL;
  assert_ok(
      weir_graph_load_text(&env, weir_sv_from(text), "t", &options, &g, &err),
      &err);
  return g;
}

static void check(exec_world *world, const weir_graph *g, const char *name,
                  int count, const double *want) {
  weir_error err = WEIR_ERROR_INIT;
  weir_pool *pool = exec_pool(world, 1);
  weir_exec_session *session = NULL;
  assert_ok(
      weir_exec_session_create(&world->env, pool, g, NULL, &session, &err),
      &err);
  weir_exec_fetch fetch = {.value =
                               weir_graph_find_value(g, weir_sv_from(name))};
  assert_int_not_equal(fetch.value, WEIR_NO_VALUE);
  weir_exec_request request = {.fetches = &fetch, .fetch_count = 1};
  assert_ok(weir_exec_run(session, &request, &err), &err);
  for (int i = 0; i < count; i++)
    assert_float_equal(weir_tensor_get_f64(fetch.tensor, i), want[i], 1e-4);
  weir_tensor_unref(fetch.tensor);
  weir_exec_session_release(session);
  weir_pool_release(pool);
}

static void test_values(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int count;
    double want[3];
  } kWant[] = {{"dw", 3, {3, 12, 54}},      /* 3 w w x + 2 w b */
               {"db", 3, {1, 4, 9}},        /* w w */
               {"ddw", 3, {36, 288, 3888}}, /* 2 dw 6 w x */
               {"dx", 3, {1, 8, 27}},       /* w w w */
               {"dh", 3, {2, 4, 12}},       /* 2 h */
               {"none", 2, {0, 0}}};
  exec_world world;
  exec_world_init(&world);
  weir_graph *g = load(world.env.alloc, kGraph);
  for (uint32_t i = 0; i < g->node_count; i++)
    assert_int_not_equal(strcmp(g->nodes[i].op->name, "gradients"), 0);
  for (size_t i = 0; i < sizeof kWant / sizeof kWant[0]; i++)
    check(&world, g, kWant[i].name, kWant[i].count, kWant[i].want);
  weir_graph_unref(g);
  exec_world_check_empty(&world);
}

/* Slopes at the ends of the line, where a factor is infinite; the sign of a
 * zero is a zero without sign. */
static void test_ends(void **state) {
  (void)state;
  static const char kEnds[] =
      "weir: 1\n"
      "inputs: {x: 'f32[3] = [-1e20, 1e20, 0]'}\n"
      "nodes:\n"
      "  s: sum(gelu(x, approximate=tanh))\n"
      "  t: sum(gelu(x))\n"
      "  ds: gradients(s, [x])\n"
      "  dt: gradients(t, [x])\n"
      "  i: div(1, sign(const([-0.0, 0.0])))\n"
      "outputs: [ds, dt, i]\n";
  const double want[] = {0, 1, 0.5}, infinite[] = {INFINITY, INFINITY};
  exec_world world;
  exec_world_init(&world);
  weir_graph *g = load(world.env.alloc, kEnds);
  check(&world, g, "ds", 3, want);
  check(&world, g, "dt", 3, want);
  check(&world, g, "i", 2, infinite);
  weir_graph_unref(g);
  exec_world_check_empty(&world);
}

/* A loss that holds a gradient can be trained. */
static void test_penalty(void **state) {
  (void)state;
  exec_world world;
  weir_error err = WEIR_ERROR_INIT;
  exec_world_init(&world);
  weir_graph *g = load(world.env.alloc, kGraph);
  weir_train_spec *spec = NULL;
  weir_train_graph *train = NULL;
  assert_ok(weir_train_spec_read(g, NULL, &spec, &err), &err);
  assert_ok(weir_graph_train(g, spec, &train, &err), &err);
  assert_int_equal(train->trained_count, 2);
  weir_pool *pool = exec_pool(&world, 1);
  weir_exec_session *session = NULL;
  assert_ok(weir_exec_session_create(&world.env, pool, train->graph, NULL,
                                     &session, &err),
            &err);
  weir_exec_request request = {.targets = train->targets,
                               .target_count = train->target_count};
  assert_ok(weir_exec_run(session, &request, &err), &err);
  weir_tensor *w = NULL;
  assert_ok(weir_exec_variable_get(
                session, weir_graph_find_node(train->graph, WEIR_SV_LIT("w")),
                &w, &err),
            &err);
  /* w - (3 w w x + 4 w w w) / 2 */
  assert_float_equal(weir_tensor_get_f64(w, 0), 1 - 3.5, 1e-5);
  assert_float_equal(weir_tensor_get_f64(w, 1), 2 - 22, 1e-4);
  weir_tensor_unref(w);
  weir_exec_session_release(session);
  weir_pool_release(pool);
  weir_train_graph_release(train);
  weir_train_spec_release(spec);
  weir_graph_unref(g);
  exec_world_check_empty(&world);
}

/* Every allocation fails in turn: from the text to the training graph. */
static weir_status all_of_it(const weir_allocator *alloc, weir_error *err) {
  weir_load_options options = {.registry = weir_builtin_registry()};
  weir_env env = {.alloc = alloc};
  weir_graph *g = NULL;
  weir_train_spec *spec = NULL;
  weir_train_graph *train = NULL;
  weir_status s =
      weir_graph_load_text(&env, weir_sv_from(kGraph), "t", &options, &g, err);
  if (s == WEIR_OK) s = weir_train_spec_read(g, NULL, &spec, err);
  if (s == WEIR_OK) s = weir_graph_train(g, spec, &train, err);
  weir_train_graph_release(train);
  weir_train_spec_release(spec);
  weir_graph_unref(g);
  return s;
}

static void test_memory(void **state) {
  (void)state;
  for (int forever = 0; forever < 2; forever++) {
    bool done = false;
    for (uint64_t k = 1; !done; k++) {
      weir_counted_allocator memory;
      weir_error err = WEIR_ERROR_INIT;
      weir_counted_allocator_init(&memory, NULL);
      memory.fail_at = k;
      memory.fail_forever = forever != 0;
      weir_status s = all_of_it(&memory.base, &err);
      done = atomic_load(&memory.calls) < k;
      if (done)
        assert_int_equal(s, WEIR_OK);
      else
        assert_string_equal(err.id, "W6001");
      assert_int_equal(atomic_load(&memory.live_blocks), 0);
    }
  }
}

/* Gradients of gradients grow fast: they are bounded as nodes are. */
static void test_limit(void **state) {
  (void)state;
  static const char kText[] =
      "weir: 1\n"
      "inputs: {x: 'f32[3]'}\n"
      "nodes:\n"
      "  a: tanh(x)\n"
      "  b: gradients(gradients(gradients(gradients(a, x), x), x), x)\n"
      "  c: gradients(gradients(gradients(gradients(b, x), x), x), x)\n"
      "outputs: [c]\n";
  weir_load_options options = {.registry = weir_builtin_registry(),
                               .max_nodes = 1000};
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *g = NULL;
  assert_error(weir_graph_load_text(weir_env_system(), weir_sv_from(kText), "t",
                                    &options, &g, &err),
               &err, "W1014");
  assert_null(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values), cmocka_unit_test(test_ends),
      cmocka_unit_test(test_penalty), cmocka_unit_test(test_limit),
      cmocka_unit_test(test_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
