/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/measure/calibrate_link.h"
#include "runtime/exec/measure/measure.h"
#include "runtime/graph/load/load.h"
#include "runtime/graph/pass/pass_fuse.h"
#include "runtime/graph/pass/pass_simplify.h"

#include <string.h>

#include "kernels/kernel.h"
#include "placement/lower/signature.h"
#include "runtime/exec/measure/calibrate.h"
#include "tests/exec/support.h"

/* A graph, its goal and its units. */
typedef struct scene {
  exec_world world;
  weir_graph *graph;
  weir_goal *goal;
  weir_cut *cut;
  weir_cluster *cluster;
  weir_placement *placement;
} scene;

static const char kGraph[] =
    "weir: 1\n"
    "inputs: {x: \"f32[32, 64]\", k: \"f32[] = 2\"}\n"
    "nodes:\n"
    "  w: var([64, 48], init=uniform(-1, 1))\n"
    "  v: var([48], init=ones())\n"
    "  h: relu(add(matmul(x, w), v))\n"
    "  g: relu(add(matmul(neg(x), w), v))\n"
    "  s: mul(add(reduce_sum(h, axis=0), reduce_sum(g, axis=0)), k)\n"
    "  a: assign(v, s)\n"
    "  t: task(s, cost_ns=20000)\n"
    "  r: reshape(h, [64, 24])\n"
    "outputs: [a, t, r]\n";

static weir_status open_scene(scene *s, const char *text, weir_error *err) {
  weir_load_options o = {.registry = weir_builtin_registry()};
  const weir_env *env = &s->world.env;
  weir_status status = weir_graph_load_text(env, weir_sv_from(text), "g.yaml",
                                            &o, &s->graph, err);
  if (status == WEIR_OK)
    status = weir_goal_create(s->graph, false, &s->goal, err);
  weir_shape shapes[4];
  if (status == WEIR_OK)
    status = weir_graph_input_shapes(s->graph, NULL, 0, shapes, err);
  if (status == WEIR_OK) status = weir_goal_cut(s->goal, shapes, &s->cut, err);
  if (status == WEIR_OK)
    status = weir_cluster_from_text(env->alloc, WEIR_SV_LIT("auto"),
                                    &s->cluster, err);
  if (status == WEIR_OK)
    status = weir_placement_create(env->alloc, s->cut->graph, s->cluster, NULL,
                                   &s->placement, err);
  return status;
}

static void close_scene(scene *s) {
  weir_placement_release(s->placement);
  weir_cluster_release(s->cluster);
  weir_cut_release(s->cut);
  weir_goal_release(s->goal);
  weir_graph_unref(s->graph);
}

static weir_measure_request request_of(const scene *s) {
  return (weir_measure_request){.goal = s->goal,
                                .placement = s->placement,
                                .least_runs = 3,
                                .most_runs = 5,
                                .limit_ns = 1};
}

static uint32_t unit_named(const scene *s, const char *name) {
  return s->placement
      ->unit_of[weir_graph_find_node(s->cut->graph, weir_sv_from(name))];
}

static void units_take_time_and_views_do_not(void **state) {
  (void)state;
  scene s = {0};
  weir_error err = WEIR_ERROR_INIT;
  weir_measured *m = NULL;
  exec_world_init(&s.world);
  assert_ok(open_scene(&s, kGraph, &err), &err);
  weir_measure_request r = request_of(&s);
  assert_ok(weir_measure(&s.world.env, &r, &m, &err), &err);
  assert_int_equal(m->unit_count, s.placement->unit_count);
  assert_int_equal(m->runs, 3);
  uint32_t h = unit_named(&s, "h"), t = unit_named(&s, "t");
  uint32_t x = unit_named(&s, "x");
  assert_true(m->units[h].median_ns > 0);
  assert_int_equal(m->units[h].count, 3);
  assert_true(m->start_ns[h] >= 0 && m->end_ns[h] > m->start_ns[h]);
  /* A task waits at least so long, and the step waits for it. */
  assert_true(m->units[t].median_ns >= 20000 - 200);
  assert_true(m->step.median_ns >= 20000);
  assert_true(m->start_ns[t] >= m->end_ns[h]);
  assert_int_equal(m->units[x].median_ns, 0);
  assert_int_equal(m->start_ns[x], -1);
  assert_true(m->device_count > 0 && m->device_bytes[0] > 0);
  weir_measured_release(m);
  close_scene(&s);
  exec_world_check_empty(&s.world);
}

static void calibration_covers_every_unit(void **state) {
  (void)state;
  scene s = {0};
  weir_error err = WEIR_ERROR_INIT;
  weir_costs *costs = NULL;
  exec_world_init(&s.world);
  assert_ok(open_scene(&s, kGraph, &err), &err);
  weir_measure_request r = request_of(&s);
  assert_ok(weir_costs_create(s.world.env.alloc, &costs, &err), &err);
  assert_ok(weir_calibrate(&s.world.env, &r, costs, &err), &err);
  weir_lower_options o = {.costs = costs};
  weir_placement *p = NULL;
  assert_ok(weir_placement_create(s.world.env.alloc, s.cut->graph, s.cluster,
                                  &o, &p, &err),
            &err);
  uint32_t t = unit_named(&s, "t"), h = unit_named(&s, "h");
  for (uint32_t u = 0; u < p->unit_count; u++)
    assert_int_equal(p->units[u].source,
                     u == t ? WEIR_COST_GIVEN : WEIR_COST_MEASURED);
  assert_int_equal(p->problem->cost[t * WEIR_DEVICE_KINDS], 20000);
  assert_true(p->problem->cost[h * WEIR_DEVICE_KINDS] > 0);
  assert_ptr_equal(
      p->units[h].measured[0],
      weir_costs_find(costs, WEIR_CPU, 1, p->units[h].measured[0]->key));
  /* h and g are the same work: one entry, of as many runs as there were. */
  assert_ptr_equal(p->units[h].measured[0],
                   p->units[unit_named(&s, "g")].measured[0]);
  assert_int_equal(p->units[h].measured[0]->sample.count, 3);
  assert_true(p->units[h].measured[0]->flops > 0);
  weir_placement_release(p);
  weir_costs_release(costs);
  close_scene(&s);
  exec_world_check_empty(&s.world);
}

/* Nothing is left, for each allocation that fails. */
static void calibration_survives_failed_allocations(void **state) {
  (void)state;
  bool done = false;
  for (uint64_t k = 1; !done; k = counted_next(k + k / 40)) {
    scene s = {0};
    weir_error err = WEIR_ERROR_INIT;
    weir_costs *costs = NULL;
    exec_world_init(&s.world);
    assert_ok(open_scene(&s, kGraph, &err), &err);
    uint64_t before = atomic_load(&s.world.memory.calls);
    weir_measure_request r = request_of(&s);
    s.world.memory.fail_at = before + k;
    weir_status status = weir_costs_create(s.world.env.alloc, &costs, &err);
    if (status == WEIR_OK)
      status = weir_calibrate(&s.world.env, &r, costs, &err);
    done = atomic_load(&s.world.memory.calls) < before + k;
    if (done) assert_ok(status, &err);
    s.world.memory.fail_at = 0;
    weir_costs_release(costs);
    close_scene(&s);
    exec_world_check_empty(&s.world);
  }
}

static void an_open_shape_cannot_be_measured(void **state) {
  (void)state;
  static const char text[] =
      "weir: 1\ndims: {n: null}\n"
      "inputs: {x: \"f32[4]\", y: \"f32[n]\"}\n"
      "nodes:\n  a: neg(x)\n  b: neg(y)\noutputs: [a, b]\n";
  scene s = {0};
  weir_error err = WEIR_ERROR_INIT;
  weir_measured *m = NULL;
  exec_world_init(&s.world);
  assert_error(open_scene(&s, text, &err), &err, "W2008");
  close_scene(&s);
  /* The units are known, but the graph has one more input. */
  scene t = {.world = s.world};
  exec_world_init(&t.world);
  assert_ok(open_scene(&t,
                       "weir: 1\ninputs: {x: \"f32[4]\"}\n"
                       "nodes:\n  a: neg(x)\noutputs: [a]\n",
                       &err),
            &err);
  weir_graph *open = NULL;
  weir_load_options o = {.registry = weir_builtin_registry()};
  assert_ok(weir_graph_load_text(&t.world.env, weir_sv_from(text), "g.yaml", &o,
                                 &open, &err),
            &err);
  weir_measure_request r = request_of(&t);
  weir_goal *goal = NULL;
  assert_ok(weir_goal_create(open, false, &goal, &err), &err);
  r.goal = goal;
  assert_error(weir_measure(&t.world.env, &r, &m, &err), &err, "W3047");
  assert_null(m);
  weir_goal_release(goal);
  weir_graph_unref(open);
  close_scene(&t);
  exec_world_check_empty(&t.world);
}

static void the_median_is_not_moved_by_outliers(void **state) {
  (void)state;
  int64_t times[9] = {100, 101, 99, 100, 1000000, 102, 98, 100, 999999};
  weir_cost_sample s = weir_sample_of(times, 9);
  assert_int_equal(s.median_ns, 100);
  assert_int_equal(s.spread_permille, 20); /* quartiles: 100 and 102 */
  assert_int_equal(s.count, 9);
  assert_int_equal(weir_sample_of(times, 0).count, 0);
}

static void a_link_is_measured(void **state) {
  (void)state;
  exec_world world;
  weir_error err = WEIR_ERROR_INIT;
  weir_costs *costs = NULL;
  exec_world_init(&world);
  assert_ok(weir_costs_create(world.env.alloc, &costs, &err), &err);
  assert_ok(weir_calibrate_link(&world.env, costs, &err), &err);
  assert_int_equal(costs->piece_count, 1);
  assert_int_equal(costs->pieces[0].from_bytes, 0);
  assert_true(costs->pieces[0].latency_ns >= 0);
  assert_true(costs->pieces[0].fs_per_byte >= 0);
  assert_true(costs->pieces[0].latency_ns + costs->pieces[0].fs_per_byte > 0);
  assert_int_equal(costs->pieces[0].count, 12 * 15 + 2 * 5);
  weir_costs_release(costs);
  exec_world_check_empty(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(units_take_time_and_views_do_not),
      cmocka_unit_test(calibration_covers_every_unit),
      cmocka_unit_test(calibration_survives_failed_allocations),
      cmocka_unit_test(an_open_shape_cannot_be_measured),
      cmocka_unit_test(a_link_is_measured),
      cmocka_unit_test(the_median_is_not_moved_by_outliers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
