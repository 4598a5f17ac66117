/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "placement/check.h"
#include "placement/schedule/rank.h"
#include "placement/schedule/schedule.h"
#include "placement/solve/lists.h"
#include "placement/solve/search.h"
#include "tests/check.h"

enum { NODES = 24, DEVICES = 3 };

static weir_place_problem *make(const weir_allocator *a, uint32_t seed,
                                int64_t cap, weir_error *err) {
  weir_place_builder *b = NULL;
  weir_place_problem *p = NULL;
  uint32_t x = seed * 2654435761u + 1;
  if (weir_place_builder_create(a, DEVICES, &b, err) != WEIR_OK) return NULL;
  for (uint32_t d = 0; d < DEVICES; d++)
    weir_place_add_device(b, &(weir_place_device){WEIR_SV_LIT("d"), d, cap});
  weir_place_connect_all(b,
                         &(weir_place_link){seed % 7, 1000000, seed % 2 == 0});
  for (uint32_t n = 0; n < NODES; n++) {
    int64_t cost[DEVICES] = {(x >> 4) % 50, (x >> 9) % 70, (x >> 13) % 40};
    if (x % 5 == 0) cost[x % 3] = WEIR_PLACE_NO_KERNEL;
    weir_place_node_spec spec = {
        .cost = cost,
        .resident_bytes = x % 20,
        .group = seed % 3 == 0 && x % 5 == 1 ? 1 : WEIR_PLACE_NONE};
    uint32_t id = weir_place_add_node(b, &spec);
    for (uint32_t k = 0; k < n; k++)
      if (((x >> (k % 16)) & 7) == 0) weir_place_add_use(b, id, k);
    weir_place_add_tensor(b, id, (x >> 16) % 30);
    x = x * 1664525u + 1013904223u;
  }
  weir_place_builder_finish(b, &p, err);
  weir_place_builder_release(b);
  return p;
}

/* Two nodes that wait for nothing, two devices. By their ends: the short one
 * (2 on the first device) before the long one (3 there, 9 on the second), or
 * after it. */
static void the_short_or_the_long_one_first(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_builder *b = NULL;
  weir_place_problem *p = NULL;
  assert_ok(weir_place_builder_create(weir_allocator_system(), 2, &b, &err),
            &err);
  for (uint32_t d = 0; d < 2; d++)
    weir_place_add_device(b,
                          &(weir_place_device){WEIR_SV_LIT("d"), d, INT64_MAX});
  weir_place_connect_all(b, &(weir_place_link){0});
  static const int64_t costs[2][2] = {{3, 9}, {2, 4}};
  for (int n = 0; n < 2; n++)
    weir_place_add_node(
        b, &(weir_place_node_spec){.cost = costs[n], .group = WEIR_PLACE_NONE});
  assert_ok(weir_place_builder_finish(b, &p, &err), &err);
  weir_place_builder_release(b);
  int64_t key[2];
  uint32_t device[2];
  assert_true(weir_place_list_fits(p));
  assert_ok(weir_place_list(weir_allocator_system(), p, WEIR_LIST_MIN, key,
                            device, &err),
            &err);
  assert_true(key[1] > key[0]);
  assert_int_equal(device[1], 0);
  assert_int_equal(device[0], 0); /* 2 + 3 is less than 9 */
  assert_ok(weir_place_list(weir_allocator_system(), p, WEIR_LIST_MAX, key,
                            device, &err),
            &err);
  assert_true(key[0] > key[1]);
  assert_int_equal(device[0], 0);
  assert_int_equal(device[1], 1); /* 4 is less than 3 + 2 */
  weir_place_problem_release(p);
}

/* Each rule's order and devices make a sound plan, and the portfolio's answer
 * is not longer than any of them. */
static void every_list_makes_a_plan(void **state) {
  (void)state;
  for (uint32_t seed = 1; seed < 40; seed++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_place_problem *p =
        make(weir_allocator_system(), seed, INT64_MAX, &err);
    weir_scheduler *s = NULL;
    weir_place_plan *plan = NULL;
    weir_place_result best;
    if (p == NULL) continue; /* a group that no device may have */
    if (weir_place_solve(weir_allocator_system(), p, NULL, &best, &err) !=
        WEIR_OK) {
      assert_string_equal(err.id, "W3012");
      weir_place_problem_release(p);
      continue;
    }
    assert_ok(weir_scheduler_create(weir_allocator_system(), p, &s, &err),
              &err);
    assert_ok(weir_place_plan_create(weir_allocator_system(), p, &plan, &err),
              &err);
    for (int rule = 0; rule < WEIR_LIST_RULES; rule++) {
      int64_t key[NODES];
      uint32_t device[NODES], heap[NODES], waiting[NODES], order[NODES];
      assert_ok(weir_place_list(weir_allocator_system(), p,
                                (weir_list_rule)rule, key, device, &err),
                &err);
      weir_place_order(p, key, heap, waiting, order);
      weir_schedule_input input = {.order = order, .device = device};
      assert_ok(weir_schedule_run(s, &input, plan, NULL, &err), &err);
      assert_ok(weir_place_check(weir_allocator_system(), p, plan, NULL, &err),
                &err);
      assert_true(best.plan->makespan_ns <= plan->makespan_ns);
    }
    weir_scheduler_release(s);
    weir_place_plan_release(plan);
    weir_place_plan_release(best.plan);
    weir_place_problem_release(p);
  }
}

/* With caps a rank may make no plan where a list does. The search then begins
 * elsewhere: it finds a plan wherever the portfolio does. */
static void caps_do_not_stop_the_search(void **state) {
  (void)state;
  uint32_t found = 0;
  for (uint32_t seed = 1; seed < 300; seed++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_place_problem *p =
        make(weir_allocator_system(), seed, 120 + seed % 100, &err);
    weir_place_options o = {.moves = 40};
    weir_place_result first = {0}, more = {0};
    if (p == NULL) continue;
    if (weir_place_solve(weir_allocator_system(), p, NULL, &first, &err) ==
        WEIR_OK) {
      assert_ok(weir_place_solve(weir_allocator_system(), p, &o, &more, &err),
                &err);
      assert_ok(
          weir_place_check(weir_allocator_system(), p, more.plan, NULL, &err),
          &err);
      assert_true(more.plan->makespan_ns <= first.plan->makespan_ns);
      found++;
    }
    weir_place_plan_release(first.plan);
    weir_place_plan_release(more.plan);
    weir_place_problem_release(p);
  }
  assert_true(found > 50);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  weir_error none = WEIR_ERROR_INIT;
  weir_place_problem *p = make(weir_allocator_system(), 2, INT64_MAX, &none);
  assert_non_null(p);
  for (uint64_t k = 1;; k++) {
    weir_counted_allocator c;
    weir_error err = WEIR_ERROR_INIT;
    int64_t key[NODES];
    uint32_t device[NODES];
    weir_counted_allocator_init(&c, NULL);
    c.fail_at = k;
    weir_status s =
        weir_place_list(&c.base, p, WEIR_LIST_AHEAD, key, device, &err);
    assert_int_equal(atomic_load(&c.live_bytes), 0);
    if (s == WEIR_OK) break;
    assert_string_equal(err.id, "W6001");
  }
  weir_place_problem_release(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_short_or_the_long_one_first),
      cmocka_unit_test(every_list_makes_a_plan),
      cmocka_unit_test(caps_do_not_stop_the_search),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
