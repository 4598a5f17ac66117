/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernels/kernel.h"
#include "runtime/graph/load/load.h"
#include "runtime/graph/mesh/mesh.h"
#include "runtime/graph/mesh/mesh_lower.h"
#include "runtime/graph/mesh/mesh_var.h"
#include "runtime/graph/mesh/mesh_wanted.h"
#include "runtime/graph/pass/pass_simplify.h"
#include "tests/check.h"

/* The mesh lowering on its own; cli_mesh checks the values it computes. */

static const char kText[] =
    "weir: 1\n"
    "dims: {m: 8, k: 6, n: 4}\n"
    "mesh: {axes: {row: 2, col: 2}, devices: "
    "'/job:worker/task:[0-1]/cpu:[0-1]'}\n"
    "layout: {m: row, k: col}\n"
    "inputs: {a: 'f32[m, k]', s: 'f32[k, k]', d: 'f32[m] = 0.5'}\n"
    "nodes:\n"
    "  w: var([k, n], init=normal())\n"
    "  c: matmul(a, w)\n"
    "  p: softmax(matmul(a, s), axis=1)\n"
    "  t: transpose(mul(s, s))\n"
    "  g: reduce_sum(s, axis=0)\n"
    "  mean: mean(c)\n"
    "  next: assign(w, mul(w, cast(size(a), f32)))\n"
    "outputs: [c, p, t, g, mean, next, d]\n";

static weir_graph *load(const weir_allocator *alloc) {
  weir_error err = WEIR_ERROR_INIT;
  weir_env env = {.alloc = alloc};
  weir_load_options options = {.registry = weir_builtin_registry()};
  weir_graph *g = NULL;
  assert_ok(weir_graph_load_text(&env, weir_sv_from(kText), "mesh", &options,
                                 &g, &err),
            &err);
  return g;
}

static const weir_node *node(const weir_graph *g, const char *name) {
  weir_node_id id = weir_graph_find_node(g, weir_sv_from(name));
  if (id == UINT32_MAX) fail_msg("no node %s", name);
  return &g->nodes[id];
}

static void assert_type(const weir_graph *g, const char *name,
                        const char *type) {
  char text[128];
  weir_value_id id = node(g, name)->first_output;
  assert_string_equal(weir_graph_type_text(g, id, text, sizeof text), type);
}

static void local_shapes_and_collectives(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *g = load(weir_allocator_system());
  weir_mesh_graph *m = NULL;
  assert_ok(weir_graph_mesh(g, &m, &err), &err);
  assert_null(m->graph->mesh);
  assert_int_equal(m->device_count, 4);
  assert_type(m->graph, "c@3", "f32[4, 4]"); /* a partial sum */
  assert_string_equal(node(m->graph, "c/all_reduce@3")->op->name, "all_reduce");
  assert_type(m->graph, "g/reduce_scatter@1", "f32[3]");
  assert_type(m->graph, "t/all_to_all@0", "f32[2, 3, 3]");
  assert_type(m->graph, "w@1", "f32[3, 4]");
  weir_sv device = node(m->graph, "w@2")->device;
  assert_true(weir_sv_is(device, "/job:worker/task:1/device:CPU:0"));
  /* Whole values have the types that they had. */
  for (weir_value_id v = 0; v < g->value_count; v++)
    assert_true(weir_shape_equal(g->values[v].shape,
                                 m->graph->values[m->values[v]].shape));
  assert_int_equal(m->var_count, 1);
  weir_mesh_graph_release(m);
  weir_graph_unref(g);
}

static void shards_and_whole(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *g = load(weir_allocator_system());
  weir_mesh_graph *m = NULL;
  assert_ok(weir_graph_mesh(g, &m, &err), &err);
  const weir_shape *shape = g->values[node(g, "w")->first_output].shape;
  float whole[24], back[24] = {0}, shard[12];
  for (int i = 0; i < 24; i++) whole[i] = (float)i;
  for (uint32_t d = 0; d < 4; d++) {
    weir_mesh_shard part = {g->mesh, &m->vars[0], d, WEIR_F32, shape};
    weir_mesh_shard_copy(&part, whole, shard, false);
    assert_int_equal((int)shard[0], d % 2 * 12); /* rows 0-2, 3-5 */
    weir_mesh_shard_copy(&part, back, shard, true);
  }
  assert_memory_equal(whole, back, sizeof whole);
  weir_mesh_graph_release(m);
  weir_graph_unref(g);
}

/* Ranks of a group are needed together. */
static void ranks_live_together(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_graph *g = load(weir_allocator_system()), *simple = NULL;
  weir_mesh_graph *m = NULL;
  assert_ok(weir_graph_mesh(g, &m, &err), &err);
  weir_value_id c = weir_graph_find_value(m->graph, WEIR_SV_LIT("c@0"));
  weir_value_id all =
      weir_graph_find_value(m->graph, WEIR_SV_LIT("c/all_reduce@0"));
  weir_simplify_options o = {.values = &c, .value_count = 1};
  assert_ok(weir_graph_simplify(m->graph, &o, NULL, NULL, &simple, &err), &err);
  assert_int_equal(weir_graph_find_node(simple, WEIR_SV_LIT("c@1")),
                   UINT32_MAX);
  weir_graph_unref(simple);
  o.values = &all;
  assert_ok(weir_graph_simplify(m->graph, &o, NULL, NULL, &simple, &err), &err);
  node(simple, "c/all_reduce@1");
  assert_int_equal(weir_graph_find_node(simple, WEIR_SV_LIT("c@2")),
                   UINT32_MAX);
  weir_graph_unref(simple);
  weir_mesh_graph_release(m);
  weir_graph_unref(g);
}

static void no_memory(void **state) {
  (void)state;
  for (int forever = 0; forever < 2; forever++) {
    weir_status s = WEIR_UNKNOWN;
    for (uint64_t k = 1; s != WEIR_OK; k += 1 + k / 64) {
      weir_counted_allocator c;
      weir_counted_allocator_init(&c, NULL);
      weir_graph *g = load(&c.base), *wanted = NULL;
      weir_error err = WEIR_ERROR_INIT;
      c.fail_at = atomic_load(&c.calls) + k;
      c.fail_forever = forever;
      s = weir_graph_mesh_wanted(g, NULL, &wanted, &err);
      if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
      weir_graph_unref(wanted);
      weir_graph_unref(g);
      assert_int_equal(atomic_load(&c.live_blocks), 0);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(local_shapes_and_collectives),
      cmocka_unit_test(shards_and_whole),
      cmocka_unit_test(ranks_live_together),
      cmocka_unit_test(no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
