/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernels/kernel.h"
#include "placement/report/dump_parts.h"
#include "placement/report/dump_parts_dot.h"
#include "placement/report/dump_parts_json.h"
#include "placement/solve/search.h"
#include "runtime/base/env_system.h"
#include "runtime/graph/load/load.h"
#include "runtime/graph/pass/pass_simplify.h"
#include "tests/check.h"
#include "tests/placement/partition_check.h"

/* Rows of parts, and their writers: memory that runs out, files that are full,
 * names that would leave their quotes. */

static const char text[] =
    "weir: 1\n"
    "inputs: {x: \"f32[4]\"}\n"
    "nodes:\n"
    "  w: {op: var, attrs: {shape: [4], init: ones()}, device: /job:ps}\n"
    "  v: {op: var, attrs: {shape: [4], init: ones()}, device: /job:ps}\n"
    "  y: {op: mul, in: [w, v], device: '/job:worker/task:0'}\n"
    "  z: {op: softmax, in: [y], device: '/job:worker/task:1'}\n"
    "  s: {op: softmax, in: [w], device: '/job:worker/task:1'}\n"
    "  u: assign(w, z)\n"
    "  n: {op: softmax, in: [x], after: [z], device: '/job:worker/task:0'}\n"
    "outputs: [u, n, s]\n"
    "placement: [{match: x, device: '/job:worker/task:0'}]\n";

typedef struct scene {
  weir_graph *graph;
  weir_cluster *cluster;
  weir_placement *placement;
  weir_place_result result;
  weir_partition *cut;
} scene;

static void open_scene(scene *s) {
  weir_error err = WEIR_ERROR_INIT;
  const weir_allocator *a = weir_allocator_system();
  weir_graph *g = NULL;
  weir_load_options o = {.registry = weir_builtin_registry()};
  weir_value_id wanted[3];
  memset(s, 0, sizeof *s);
  assert_ok(weir_graph_load_text(weir_env_system(), weir_sv_from(text),
                                 "g.yaml", &o, &g, &err),
            &err);
  for (uint32_t i = 0; i < 3; i++) wanted[i] = g->outputs[i].value;
  weir_simplify_options simple = {
      .values = wanted, .value_count = 3, .drop_inits = true};
  assert_ok(weir_graph_simplify(g, &simple, NULL, NULL, &s->graph, &err), &err);
  weir_graph_unref(g);
  assert_ok(weir_cluster_from_text(a, WEIR_SV_LIT("ps=1,worker=2"), &s->cluster,
                                   &err),
            &err);
  assert_ok(
      weir_placement_create(a, s->graph, s->cluster, NULL, &s->placement, &err),
      &err);
  assert_ok(weir_place_solve(a, s->placement->problem, NULL, &s->result, &err),
            &err);
  assert_ok(
      weir_partition_create(a, s->placement, s->result.plan, &s->cut, &err),
      &err);
}

static void close_scene(scene *s) {
  weir_partition_release(s->cut);
  weir_place_plan_release(s->result.plan);
  weir_placement_release(s->placement);
  weir_cluster_release(s->cluster);
  weir_graph_unref(s->graph);
}

static weir_sv name_of(const scene *s, weir_node_id id) {
  return s->graph->nodes[id].name;
}

static const weir_parts_edge *find_edge(const scene *s,
                                        const weir_place_parts *parts,
                                        const char *maker, uint32_t to) {
  for (uint32_t i = 0; i < parts->edge_count; i++)
    if (weir_sv_is(name_of(s, parts->edges[i].node), maker) &&
        parts->edges[i].to == to)
      return &parts->edges[i];
  fail_msg("no edge of %s to part %u", maker, to);
  return NULL;
}

static void rows_are_right(void **state) {
  (void)state;
  scene s;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_parts *p = NULL;
  open_scene(&s);
  assert_ok(weir_place_parts_create(weir_allocator_system(), s.placement, s.cut,
                                    &p, &err),
            &err);
  assert_int_equal(p->part_count, 3);
  assert_int_equal(p->parts[0].ports[WEIR_PARTS_VARIABLE].count, 2);
  assert_int_equal(p->parts[0].ports[WEIR_PARTS_OUTPUT].count, 1);
  assert_int_equal(p->parts[1].ports[WEIR_PARTS_INPUT].count, 1);
  /* w to both workers, v to the first, y, z back, and z's token. */
  assert_int_equal(p->edge_count, 6);
  assert_int_equal(find_edge(&s, p, "w", 1)->cls, WEIR_EDGE_PULL);
  assert_int_equal(find_edge(&s, p, "w", 2)->cls, WEIR_EDGE_PULL);
  assert_false(find_edge(&s, p, "w", 1)->at_start);
  assert_true(find_edge(&s, p, "v", 1)->at_start); /* nothing assigns it */
  assert_int_equal(find_edge(&s, p, "y", 2)->cls, WEIR_EDGE_TENSOR);
  assert_int_equal(find_edge(&s, p, "z", 0)->cls, WEIR_EDGE_PUSH);
  const weir_parts_edge *token = find_edge(&s, p, "z", 1);
  assert_int_equal(token->cls, WEIR_EDGE_CONTROL);
  assert_int_equal(token->bytes, 0);
  assert_true(weir_sv_is(name_of(&s, token->readers[0]), "n"));
  /* Of v no step sends anything. */
  assert_int_equal(p->parts[0].sent_bytes, 32);
  assert_int_equal(p->parts[0].received_bytes, 16);
  assert_int_equal(p->parts[0].sent_count, 3);
  for (uint32_t i = 0; i < p->edge_count; i++) {
    assert_true(p->edges[i].between_tasks);
    assert_int_equal(p->edges[i].reader_count, 1);
    assert_int_equal(p->edges[i].value, p->partition->edges[i].value);
  }
  assert_ok(weir_partition_check(s.graph, p->partition, &err), &err);
  weir_place_parts_release(p);
  weir_place_parts_release(NULL);
  close_scene(&s);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  scene s;
  weir_counted_allocator m;
  open_scene(&s);
  for (int forever = 0; forever < 2; forever++)
    for (uint64_t k = 1;; k++) {
      weir_error err = WEIR_ERROR_INIT;
      weir_place_parts *p = NULL;
      weir_counted_allocator_init(&m, NULL);
      m.fail_at = k;
      m.fail_forever = forever;
      weir_status status =
          weir_place_parts_create(&m.base, s.placement, s.cut, &p, &err);
      assert_int_equal(p != NULL, status == WEIR_OK);
      weir_place_parts_release(p);
      assert_int_equal(atomic_load(&m.live_bytes), 0);
      if (status == WEIR_OK) break;
      assert_string_equal(err.id, "W6001");
    }
  close_scene(&s);
}

/* A writer that takes |left| calls. */
static bool take_some(void *self, const char *data, size_t size) {
  (void)data;
  (void)size;
  int *left = self;
  return (*left)-- > 0;
}

static void a_full_disk_is_reported(void **state) {
  (void)state;
  static bool (*const writers[])(const weir_place_parts *,
                                 const weir_writer *) = {
      weir_place_write_parts, weir_place_write_parts_json,
      weir_place_write_parts_dot};
  scene s;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_parts *p = NULL;
  open_scene(&s);
  assert_ok(weir_place_parts_create(weir_allocator_system(), s.placement, s.cut,
                                    &p, &err),
            &err);
  for (size_t w = 0; w < sizeof writers / sizeof *writers; w++) {
    int calls = 0;
    for (bool ok = false; !ok; calls++) {
      int left = calls;
      ok = writers[w](p, &(weir_writer){&left, take_some});
      if (!ok) assert_int_equal(left, -1); /* it is not called again */
    }
    assert_in_range(calls, 3, 400);
  }
  weir_place_parts_release(p);
  close_scene(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_are_right),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(a_full_disk_is_reported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
