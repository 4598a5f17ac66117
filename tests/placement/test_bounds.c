/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "placement/bounds/bounds.h"
#include "placement/bounds/bounds_memory.h"
#include "placement/bounds/bounds_split.h"
#include "runtime/base/mix.h"
#include "tests/check.h"

/* Bounds that know copies, groups and caps, beside all plans of small problems.
 */

enum { NODES = 6, DEVICES = 3, SEEDS = 1500 };

/* A processor, which spends no time on copies in some problems, and two
 * accelerators; caps that bind in some. */
static weir_place_problem *make(uint64_t seed, weir_error *err) {
  uint64_t random = seed;
  weir_place_builder *b = NULL;
  weir_place_problem *p = NULL;
  assert_ok(weir_place_builder_create(weir_allocator_system(), 2, &b, err),
            err);
  int64_t cap = weir_mix_below(&random, 2) == 0
                    ? INT64_MAX
                    : 15 + weir_mix_below(&random, 50);
  for (uint32_t d = 0; d < DEVICES; d++)
    weir_place_add_device(
        b, &(weir_place_device){
               WEIR_SV_LIT("d"), d > 0,
               d == 0 && weir_mix_below(&random, 3) > 0 ? INT64_MAX : cap});
  if (weir_mix_below(&random, 2) == 0) weir_place_no_copy_load(b, 0);
  weir_place_connect_all(
      b,
      &(weir_place_link){weir_mix_below(&random, 3),
                         500000 + 1000 * weir_mix_below(&random, 2000), false});
  uint32_t size = 1 + weir_mix_below(&random, 40),
           groups = weir_mix_below(&random, 4);
  uint32_t set = weir_place_add_set(b, (uint32_t[]){0, 2}, 2);
  for (uint32_t n = 0; n < NODES; n++) {
    int64_t cost[2] = {weir_mix_below(&random, 60),
                       1 + weir_mix_below(&random, 20)};
    if (weir_mix_below(&random, 12) == 0) cost[1] = WEIR_PLACE_NO_KERNEL;
    weir_place_node_spec spec = {
        .cost = cost,
        .resident_bytes = weir_mix_below(&random, 20),
        .set = weir_mix_below(&random, 10) == 0 ? set : 0,
        .group = weir_mix_below(&random, 4) < groups
                     ? weir_mix_below(&random, 3)
                     : WEIR_PLACE_NONE};
    uint32_t id = weir_place_add_node(b, &spec);
    for (uint32_t k = 0; k < n; k++)
      if (k + 1 == n || weir_mix_below(&random, 4) == 0)
        weir_place_add_use(b, id, k);
    weir_place_keep_tensor(
        b, weir_place_add_tensor(b, id, weir_mix_below(&random, size)), id);
  }
  assert_ok(weir_place_builder_finish(b, &p, err), err);
  weir_place_builder_release(b);
  return p;
}

static bool is_sound(const weir_place_problem *p, const uint32_t *device) {
  int64_t bytes[DEVICES] = {0};
  for (uint32_t n = 0; n < NODES; n++) {
    if (weir_place_cost(p, n, device[n]) == WEIR_PLACE_NO_KERNEL) return false;
    bytes[device[n]] += p->resident_bytes[n];
    for (uint32_t k = 0; k < n; k++)
      if (p->group[n] != WEIR_PLACE_NONE && p->group[n] == p->group[k] &&
          device[n] != device[k])
        return false;
  }
  for (uint32_t d = 0; d < DEVICES; d++)
    if (bytes[d] > p->devices[d].memory_bytes) return false;
  return true;
}

/* The shortest step with these devices: each order of the nodes as a list. */
static int64_t shortest_step(const weir_place_problem *p,
                             const uint32_t *device, uint32_t placed,
                             int64_t *end, int64_t *free, int64_t now,
                             int64_t best) {
  if (now >= best) return best;
  if (placed == (1u << NODES) - 1) return now;
  for (uint32_t n = 0; n < NODES; n++) {
    int64_t start = free[device[n]], kept = start;
    bool ready = (placed >> n & 1) == 0;
    for (uint32_t k = p->in_first[n]; k < p->in_first[n + 1] && ready; k++) {
      uint32_t t = p->in_tensor[k], from = p->tensor_node[t];
      ready = placed >> from & 1;
      int64_t at = end[from];
      if (device[from] != device[n])
        at += weir_load_travel(p, t, device[from], device[n]);
      if (ready && at > start) start = at;
    }
    if (!ready) continue;
    end[n] = free[device[n]] = start + weir_place_cost(p, n, device[n]);
    best = shortest_step(p, device, placed | 1u << n, end, free,
                         end[n] > now ? end[n] : now, best);
    free[device[n]] = kept;
  }
  return best;
}

static void no_plan_is_below_a_bound(void **state) {
  (void)state;
  uint32_t proved = 0, copies = 0, lacking = 0;
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_place_problem *p = make(seed, &err);
    int64_t period = INT64_MAX, step = INT64_MAX, load[DEVICES], moved, got;
    uint32_t stamp[DEVICES];
    for (uint32_t code = 0; code < 729; code++) {
      uint32_t device[NODES], left = code;
      int64_t end[NODES], free[DEVICES] = {0};
      for (uint32_t n = 0; n < NODES; n++, left /= DEVICES)
        device[n] = left % DEVICES;
      if (!is_sound(p, device)) continue;
      int64_t most = weir_load_measure(p, device, load, stamp, &moved);
      if (most < period) period = most;
      step = shortest_step(p, device, 0, end, free, 0, step);
    }
    weir_memory_lack lack;
    assert_ok(weir_memory_prove(weir_allocator_system(), p, &lack, &err), &err);
    lacking += lack.proof != WEIR_MEMORY_OPEN;
    if (period != INT64_MAX) {
      weir_items *items = NULL;
      weir_place_bounds bounds;
      assert_int_equal(lack.proof, WEIR_MEMORY_OPEN);
      assert_ok(weir_items_create(weir_allocator_system(), p, &items, &err),
                &err);
      assert_ok(weir_bound_period(items, 4 * period + 7, &got, &err), &err);
      assert_true(got <= period);
      assert_ok(weir_bound_period(items, period, &got, &err), &err);
      assert_true(got <= period);
      proved += got == period;
      assert_ok(
          weir_place_bound(weir_allocator_system(), p, step, &bounds, &err),
          &err);
      assert_true(bounds.copies_ns <= step && bounds.memory_ns <= step);
      assert_true(bounds.memory_ns <= period);
      assert_true(bounds.best_ns <= step);
      copies += bounds.copies_ns > bounds.path_ns;
      weir_items_release(items);
    }
    weir_place_problem_release(p);
  }
  /* They say something, too. */
  assert_true(proved > SEEDS / 8);
  assert_true(copies > SEEDS / 2);
  assert_true(lacking > 0);
}

/* Ten groups of 10 bytes and work 1, or 20 on the processor, and room for six:
 * four are the processor's. */
static void bytes_that_do_not_fit_are_the_processor_s(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_builder *b = NULL;
  weir_place_problem *p = NULL;
  weir_place_bounds bounds;
  int64_t cost[2] = {20, 1};
  assert_ok(weir_place_builder_create(weir_allocator_system(), 2, &b, &err),
            &err);
  for (uint32_t d = 0; d < DEVICES; d++)
    weir_place_add_device(b, &(weir_place_device){WEIR_SV_LIT("d"), d > 0,
                                                  d == 0 ? INT64_MAX : 30});
  weir_place_connect_all(b, &(weir_place_link){0});
  for (uint32_t n = 0; n < 10; n++)
    weir_place_add_node(
        b, &(weir_place_node_spec){
               .cost = cost, .resident_bytes = 10, .group = WEIR_PLACE_NONE});
  assert_ok(weir_place_builder_finish(b, &p, &err), &err);
  weir_place_builder_release(b);
  assert_ok(weir_place_bound(weir_allocator_system(), p, 100, &bounds, &err),
            &err);
  assert_true(bounds.memory_ns >= 70 && bounds.memory_ns <= 80);
  assert_true(bounds.area_ns <= 5);
  assert_string_equal(bounds.best, "memory");
  weir_place_problem_release(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_plan_is_below_a_bound),
      cmocka_unit_test(bytes_that_do_not_fit_are_the_processor_s),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
