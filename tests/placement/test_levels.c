/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "placement/check.h"
#include "placement/schedule/mover.h"
#include "placement/schedule/rank.h"
#include "placement/solve/search.h"
#include "placement/solver/descend.h"
#include "placement/solver/level.h"
#include "runtime/base/mix.h"
#include "tests/check.h"

/* Levels of a problem, moves of a plan that share a beginning, and the descent
 * by them, each against a plain way to the same. */

enum { MOST = 40 };

static weir_place_link way = {50, 1000, true, 0, 0};

static const weir_allocator *system_memory(void) {
  return weir_allocator_system();
}

static uint32_t below(uint64_t *random, uint32_t limit) {
  return (uint32_t)((weir_mix_next(random) >> 32) % limit);
}

/* |nodes| nodes with up to three inputs on |devices| devices of class 0 and
 * |others| of class 1, where nothing can run; groups of two where |grouped|. */
static weir_status make(const weir_allocator *a, uint64_t seed, uint32_t nodes,
                        uint32_t devices, uint32_t others, bool grouped,
                        weir_place_problem **out, weir_error *err) {
  weir_place_builder *b = NULL;
  *out = NULL;
  WEIR_TRY(weir_place_builder_create(a, others > 0 ? 2 : 1, &b, err));
  for (uint32_t d = 0; d < devices + others; d++)
    weir_place_add_device(
        b,
        &(weir_place_device){WEIR_SV_LIT("d"),
                             d % 2 == 0 && others > d / 2 ? 1 : 0, INT64_MAX});
  weir_place_connect_all(b, &way);
  for (uint32_t n = 0; n < nodes; n++) {
    int64_t cost[2] = {100 + below(&seed, 400), WEIR_PLACE_NO_KERNEL};
    weir_place_node_spec spec = {.cost = cost, .group = WEIR_PLACE_NONE};
    if (grouped && n % 5 == 0) spec.group = n / 10;
    weir_place_add_node(b, &spec);
    uint32_t last = WEIR_PLACE_NONE;
    for (uint32_t i = 0; i < 3 && n > 0; i++) {
      uint32_t from = below(&seed, n);
      if (from == last) continue;
      last = from;
      weir_place_add_use(b, n, from);
    }
    weir_place_add_tensor(b, n, below(&seed, 300));
  }
  weir_status s = weir_place_builder_finish(b, out, err);
  weir_place_builder_release(b);
  return s;
}

static weir_place_problem *problem(uint64_t seed, uint32_t devices,
                                   uint32_t others, bool grouped) {
  weir_error err = WEIR_ERROR_INIT;
  weir_place_problem *p;
  assert_ok(
      make(system_memory(), seed, MOST, devices, others, grouped, &p, &err),
      &err);
  return p;
}

static weir_place_result solve(const weir_place_problem *p, uint64_t moves) {
  weir_error err = WEIR_ERROR_INIT;
  weir_place_result r;
  weir_place_options o = {.moves = moves};
  assert_ok(weir_place_solve(system_memory(), p, &o, &r, &err), &err);
  assert_ok(weir_place_check(system_memory(), p, r.plan, NULL, &err), &err);
  return r;
}

static int64_t step_of(const weir_place_problem *p, uint64_t moves) {
  weir_place_result r = solve(p, moves);
  int64_t step = r.plan->makespan_ns;
  weir_place_plan_release(r.plan);
  return step;
}

/* ---- Levels */

static void assert_same_problem(const weir_place_problem *a,
                                const weir_place_problem *b) {
  size_t pairs = (size_t)a->device_count * a->device_count;
  size_t cells = (size_t)a->node_count * a->class_count;
  assert_int_equal(a->device_count, b->device_count);
  assert_int_equal(a->class_count, b->class_count);
  assert_int_equal(a->link_count, b->link_count);
  assert_memory_equal(a->cost, b->cost, cells * sizeof *a->cost);
  assert_memory_equal(a->link_of, b->link_of, pairs * sizeof *a->link_of);
  for (uint32_t d = 0; d < a->device_count; d++) {
    assert_int_equal(a->devices[d].cls, b->devices[d].cls);
    for (uint32_t n = 0; n < a->node_count; n++)
      assert_int_equal(weir_place_cost(a, n, d), weir_place_cost(b, n, d));
  }
}

/* A level is the problem of a cluster with so many devices, devices without
 * kernels or not. */
static void a_level_is_a_smaller_cluster(void **state) {
  (void)state;
  for (uint32_t others = 0; others < 3; others++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_place_problem *p = problem(3, 4, others, false), *level, *small;
    weir_levels v;
    assert_ok(weir_levels_create(system_memory(), p, &v, &err), &err);
    assert_int_equal(v.count, 4);
    assert_int_equal(v.is_whole, others == 0);
    for (uint32_t k = 1; k <= 4; k++) {
      assert_int_equal(weir_level_devices(&v, k), k);
      small = problem(3, k, 0, false);
      assert_ok(weir_level_problem(&v, k, &level, &err), &err);
      assert_same_problem(level, small);
      assert_int_equal(step_of(level, 40), step_of(small, 40));
      weir_place_problem_release(level);
      weir_place_problem_release(small);
    }
    weir_levels_release(&v);
    weir_place_problem_release(p);
  }
}

static void a_level_keeps_requests(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_builder *b = NULL;
  weir_place_problem *p, *q;
  weir_levels v;
  assert_ok(weir_place_builder_create(system_memory(), 1, &b, &err), &err);
  for (uint32_t d = 0; d < 4; d++)
    weir_place_add_device(b,
                          &(weir_place_device){WEIR_SV_LIT("d"), 0, INT64_MAX});
  weir_place_connect_all(b, &(weir_place_link){1, 1, true});
  uint32_t only = weir_place_add_set(b, (uint32_t[]){2}, 1);
  for (uint32_t n = 0; n < 3; n++) {
    weir_place_add_node(b, &(weir_place_node_spec){.cost = (int64_t[]){10},
                                                   .set = n == 1 ? only : 0,
                                                   .group = WEIR_PLACE_NONE});
    weir_place_add_tensor(b, n, 1);
  }
  p = NULL;
  assert_ok(weir_place_builder_finish(b, &p, &err), &err);
  weir_place_builder_release(b);
  assert_ok(weir_levels_create(system_memory(), p, &v, &err), &err);
  assert_int_equal(v.count, 3); /* 0, 1 and 3 are one kind, 2 is another */
  assert_int_equal(weir_level_devices(&v, 1), 2);
  assert_ok(weir_level_problem(&v, 1, &q, &err), &err);
  assert_false(weir_place_allows(q, 1, 0));
  assert_true(weir_place_allows(q, 1, 1)); /* that is device 2 */
  weir_place_result r = solve(q, 0);
  weir_level_lift(&v, 1, 0, p, r.plan);
  assert_ok(weir_place_check(system_memory(), p, r.plan, NULL, &err), &err);
  assert_int_equal(r.plan->device[1], 2);
  weir_place_plan_release(r.plan);
  weir_place_problem_release(q);
  weir_levels_release(&v);
  weir_place_problem_release(p);
}

static void devices_and_moves_never_hurt(void **state) {
  (void)state;
  static const uint64_t moves[] = {0, 1, 7, 60};
  enum { BUDGETS = sizeof moves / sizeof *moves, DEVICES = 9 };
  for (uint64_t seed = 1; seed <= 6; seed++) {
    int64_t before[BUDGETS];
    for (uint32_t devices = 1; devices <= DEVICES; devices++) {
      weir_place_problem *p =
          problem(seed, devices, (uint32_t)(seed % 3), seed % 2 != 0);
      int64_t last = INT64_MAX;
      for (int b = 0; b < BUDGETS; b++) {
        int64_t step = step_of(p, moves[b]);
        assert_true(step <= last);
        last = step;
        /* One level for each number up to eight, and one for all. */
        if (devices > 1 && devices <= 9) assert_true(step <= before[b]);
        if (devices <= 8) before[b] = step;
      }
      weir_place_problem_release(p);
    }
  }
}

/* ---- Moves */

/* The step with |node| and its group on |device|, by a whole schedule. */
static int64_t moved_step(const weir_place_problem *p,
                          const weir_place_plan *plan, uint32_t node,
                          uint32_t device) {
  weir_error err = WEIR_ERROR_INIT;
  int64_t key[MOST];
  uint32_t order[MOST], heap[MOST], waiting[MOST], to[MOST];
  weir_scheduler *s;
  weir_place_plan *moved;
  for (uint32_t n = 0; n < MOST; n++) {
    bool with = n == node || (p->group[n] != WEIR_PLACE_NONE &&
                              p->group[n] == p->group[node]);
    key[n] = -plan->start_ns[n];
    to[n] = with ? device : plan->device[n];
  }
  weir_place_order(p, key, heap, waiting, order);
  weir_schedule_input input = {.order = order, .device = to, .spill = true};
  assert_ok(weir_scheduler_create(system_memory(), p, &s, &err), &err);
  assert_ok(weir_place_plan_create(system_memory(), p, &moved, &err), &err);
  assert_ok(weir_schedule_run(s, &input, moved, NULL, &err), &err);
  int64_t step = moved->makespan_ns;
  weir_place_plan_release(moved);
  weir_scheduler_release(s);
  return step;
}

static void a_move_is_a_whole_schedule(void **state) {
  if (state == NULL) way.send_ns = 30; /* once more, with sends */
  for (uint64_t seed = 1; seed <= 6; seed++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_place_problem *p = problem(seed, 3, 0, seed % 2 != 0);
    weir_place_result r = solve(p, 0);
    weir_mover m;
    uint64_t random = seed;
    assert_ok(weir_mover_begin(&m, system_memory(), p, &err), &err);
    weir_mover_take(&m, r.plan);
    for (int i = 0; i < 300; i++) { /* in any order */
      uint32_t n = below(&random, MOST), d = below(&random, 3);
      int64_t step = moved_step(p, r.plan, n, d);
      bool complete = false;
      assert_true(weir_mover_may(&m, n, d));
      assert_ok(weir_mover_try(&m, n, d, 0, NULL, &err), &err);
      assert_int_equal(m.plan->makespan_ns, step);
      if (d != r.plan->device[n])
        assert_ok(weir_place_check(system_memory(), p, m.plan, NULL, &err),
                  &err);
      int64_t stop = step + (int64_t)below(&random, 3) - 1;
      assert_ok(weir_mover_try(&m, n, d, stop, &complete, &err), &err);
      assert_int_equal(complete, step < stop);
    }
    weir_mover_end(&m);
    weir_place_plan_release(r.plan);
    weir_place_problem_release(p);
  }
  way.send_ns = 0;
  if (state != NULL) a_move_is_a_whole_schedule(NULL);
}

static void no_move_helps_after_a_descent(void **state) {
  (void)state;
  int64_t gained = 0;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_place_problem *p = problem(seed, 4, 0, seed % 2 != 0);
    weir_place_result r = solve(p, 0);
    weir_descent o = {.alloc = system_memory(), .problem = p};
    int64_t before = r.plan->makespan_ns;
    assert_ok(weir_place_descend(&o, r.plan, &err), &err);
    assert_ok(weir_place_check(system_memory(), p, r.plan, NULL, &err), &err);
    assert_true(r.plan->makespan_ns <= before);
    gained += before - r.plan->makespan_ns;
    for (uint32_t n = 0; n < MOST; n++)
      for (uint32_t d = 0; d < 4; d++)
        if (d != r.plan->device[n])
          assert_true(moved_step(p, r.plan, n, d) >= r.plan->makespan_ns);
    weir_place_plan_release(r.plan);
    weir_place_problem_release(p);
  }
  assert_true(gained > 0);
}

/* ---- Faults */

static weir_status all_of_it(const weir_allocator *a, weir_error *err) {
  weir_place_problem *p;
  weir_place_result r = {0};
  weir_place_options options = {.moves = 5};
  WEIR_TRY(make(a, 2, 12, 3, 1, true, &p, err));
  weir_status s = weir_place_solve(a, p, &options, &r, err);
  weir_descent o = {.alloc = a, .problem = p};
  if (s == WEIR_OK) s = weir_place_descend(&o, r.plan, err);
  weir_place_plan_release(r.plan);
  weir_place_problem_release(p);
  return s;
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  weir_counted_allocator c;
  for (int forever = 0; forever < 2; forever++)
    for (uint64_t k = 1;; k++) {
      weir_error err = WEIR_ERROR_INIT;
      weir_counted_allocator_init(&c, NULL);
      c.fail_at = k;
      c.fail_forever = forever != 0;
      weir_status s = all_of_it(&c.base, &err);
      assert_int_equal(atomic_load(&c.live_bytes), 0);
      if (s == WEIR_OK) break;
      assert_string_equal(err.id, "W6001");
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_level_is_a_smaller_cluster),
      cmocka_unit_test(a_level_keeps_requests),
      cmocka_unit_test(devices_and_moves_never_hurt),
      cmocka_unit_test(a_move_is_a_whole_schedule),
      cmocka_unit_test(no_move_helps_after_a_descent),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
