/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "placement/check.h"
#include "placement/solve/fills.h"
#include "placement/solve/regions.h"
#include "placement/solve/search.h"
#include "tests/check.h"

/* Fills of devices under memory caps, and moves of regions. */

enum { LAYERS = 12, DEVICES = 4 };

/* A chain of layers, each a group of weights of 10 bytes and a node: 1 on the
 * accelerators, 20 on the processor, device 0. Weights cost nothing anywhere. A
 * cut costs 3. */
static weir_place_problem *make(const weir_allocator *a, int64_t cap,
                                weir_error *err) {
  weir_place_builder *b = NULL;
  weir_place_problem *p = NULL;
  int64_t nothing[2] = {0, 0}, cost[2] = {20, 1};
  if (weir_place_builder_create(a, 2, &b, err) != WEIR_OK) return NULL;
  for (uint32_t d = 0; d < DEVICES; d++)
    weir_place_add_device(b, &(weir_place_device){WEIR_SV_LIT("d"), d > 0,
                                                  d == 0 ? INT64_MAX : cap});
  weir_place_connect_all(b, &(weir_place_link){0, 1000000, false});
  uint32_t last = WEIR_PLACE_NONE;
  for (uint32_t i = 0; i < LAYERS; i++) {
    weir_place_node_spec weights = {
        .cost = nothing, .resident_bytes = 10, .group = i};
    weir_place_node_spec node = {.cost = cost, .group = i};
    uint32_t w = weir_place_add_node(b, &weights);
    uint32_t t = weir_place_add_tensor(b, w, 1);
    weir_place_keep_tensor(b, t, w);
    uint32_t n = weir_place_add_node(b, &node);
    weir_place_add_use(b, n, t);
    if (last != WEIR_PLACE_NONE) weir_place_add_use(b, n, last);
    last = weir_place_add_tensor(b, n, 3);
    weir_place_keep_tensor(b, last, n);
  }
  weir_place_builder_finish(b, &p, err);
  weir_place_builder_release(b);
  return p;
}

/* Six layers fit on an accelerator, with a copy: one cut. A scheduler that
 * placed each group where its weights were free first put layers on the
 * processor. */
static void groups_go_where_they_are_cheap(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_problem *p = make(weir_allocator_system(), 64, &err);
  assert_non_null(p);
  weir_place_result r;
  weir_place_options o = {.moves = 0};
  assert_ok(weir_place_solve(weir_allocator_system(), p, &o, &r, &err), &err);
  assert_ok(weir_place_check(weir_allocator_system(), p, r.plan, NULL, &err),
            &err);
  assert_int_equal(r.plan->makespan_ns, LAYERS + 3);
  assert_memory_equal(r.plan->placer, "fill", 4);
  weir_place_plan_release(r.plan);
  weir_place_problem_release(p);
}

/* The caps hold nine of twelve layers: three are the processor's. */
static void what_fits_nowhere_goes_to_the_processor(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_problem *p = make(weir_allocator_system(), 37, &err);
  assert_non_null(p);
  weir_place_result r;
  weir_place_options o = {.moves = 2000};
  assert_ok(weir_place_solve(weir_allocator_system(), p, &o, &r, &err), &err);
  assert_ok(weir_place_check(weir_allocator_system(), p, r.plan, NULL, &err),
            &err);
  assert_int_equal(r.plan->makespan_ns, 9 + 3 * 20 + 3 * 3);
  weir_place_plan_release(r.plan);
  weir_place_problem_release(p);
}

static void each_fill_keeps_caps_and_groups(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  for (int64_t cap = 13; cap < 130; cap += 13) {
    weir_place_problem *p = make(weir_allocator_system(), cap, &err);
    weir_items *items = NULL;
    weir_fills *fills = NULL;
    assert_ok(weir_items_create(weir_allocator_system(), p, &items, &err),
              &err);
    assert_ok(weir_fills_create(items, &fills, &err), &err);
    const char *name = "";
    for (uint32_t k = 0; name != NULL; k++) {
      uint32_t device[2 * LAYERS];
      int64_t bytes[DEVICES] = {0};
      if (!weir_fills_make(fills, k, device, &name)) continue;
      for (uint32_t n = 0; n < p->node_count; n++) {
        bytes[device[n]] += p->resident_bytes[n];
        assert_int_equal(device[n], device[n & ~1u]);
      }
      for (uint32_t d = 1; d < DEVICES; d++) assert_true(bytes[d] <= cap);
    }
    weir_fills_release(fills);
    weir_items_release(items);
    weir_place_problem_release(p);
  }
}

static void regions_keep_caps_and_groups(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_problem *p = make(weir_allocator_system(), 50, &err);
  assert_non_null(p);
  weir_items *items = NULL;
  weir_regions *regions = NULL;
  assert_ok(weir_items_create(weir_allocator_system(), p, &items, &err), &err);
  assert_ok(weir_regions_create(items, &regions, &err), &err);
  uint32_t device[2 * LAYERS], moved = 0;
  uint64_t random = 1;
  for (uint32_t n = 0; n < p->node_count; n++) device[n] = n / 8;
  for (uint32_t k = 0; k < 3000; k++) {
    int64_t bytes[DEVICES] = {0};
    moved += weir_regions_change(regions, &random, device);
    for (uint32_t n = 0; n < p->node_count; n++) {
      assert_true(device[n] < DEVICES);
      bytes[device[n]] += p->resident_bytes[n];
      assert_int_equal(device[n], device[n & ~1u]);
    }
    for (uint32_t d = 1; d < DEVICES; d++) assert_true(bytes[d] <= 50);
  }
  assert_true(moved > 1000);
  device[0] = WEIR_PLACE_NONE; /* not all are set: nothing is done */
  assert_false(weir_regions_change(regions, &random, device));
  weir_regions_release(regions);
  weir_items_release(items);
  weir_place_problem_release(p);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  weir_counted_allocator c;
  for (int forever = 0; forever < 2; forever++)
    for (uint64_t k = 1;; k++) {
      weir_error err = WEIR_ERROR_INIT;
      weir_place_result r = {0};
      weir_place_options o = {.moves = 20};
      weir_counted_allocator_init(&c, NULL);
      c.fail_at = k;
      c.fail_forever = forever != 0;
      weir_place_problem *p = make(&c.base, 64, &err);
      weir_status s = p == NULL ? WEIR_RESOURCE_EXHAUSTED
                                : weir_place_solve(&c.base, p, &o, &r, &err);
      weir_place_plan_release(r.plan);
      weir_place_problem_release(p);
      assert_int_equal(atomic_load(&c.live_bytes), 0);
      if (s == WEIR_OK) break;
      assert_string_equal(err.id, "W6001");
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(groups_go_where_they_are_cheap),
      cmocka_unit_test(what_fits_nowhere_goes_to_the_processor),
      cmocka_unit_test(each_fill_keeps_caps_and_groups),
      cmocka_unit_test(regions_keep_caps_and_groups),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
