/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "placement/check.h"
#include "placement/solve/exact.h"
#include "tests/check.h"

enum { NODES = 5, DEVICES = 3 };

/* A random graph; costs of zero and equal times are frequent. */
static weir_place_problem *make(const weir_allocator *a, uint32_t seed,
                                uint32_t nodes, bool exclusive,
                                weir_error *err) {
  weir_place_builder *b = NULL;
  weir_place_problem *p = NULL;
  uint32_t x = seed * 2654435761u + 1, classes = 1 + seed % 2;
  if (weir_place_builder_create(a, classes, &b, err) != WEIR_OK) return NULL;
  for (uint32_t d = 0; d < DEVICES; d++)
    weir_place_add_device(
        b, &(weir_place_device){WEIR_SV_LIT("d"), d % classes, INT64_MAX});
  weir_place_connect_all(
      b, &(weir_place_link){seed % 3, 1000000 * (seed % 5), exclusive});
  for (uint32_t n = 0; n < nodes; n++) {
    int64_t cost[2] = {(x >> 4) % 5, (x >> 9) % 7};
    bool grouped = seed % 4 == 0 && n % 2 == 0;
    weir_place_node_spec spec = {.cost = cost,
                                 .group = grouped ? 1 : WEIR_PLACE_NONE};
    uint32_t id = weir_place_add_node(b, &spec);
    for (uint32_t k = 0; k < n; k++)
      if (((x >> (12 + 2 * (k % 8))) & 3) == 0) weir_place_add_use(b, id, k);
    weir_place_add_tensor(b, id, (x >> 16) % 3);
    x = x * 1664525u + 1013904223u;
  }
  weir_place_builder_finish(b, &p, err);
  weir_place_builder_release(b);
  return p;
}

/* ---- The truth: every order, every device, each node as early as can be. */

static int64_t finish_of(const weir_place_problem *p, const uint32_t *order,
                         const uint32_t *device) {
  int64_t end[NODES], free[DEVICES] = {0}, last = 0;
  uint32_t placed = 0;
  for (uint32_t i = 0; i < NODES; i++) {
    uint32_t n = order[i], d = device[n];
    int64_t start = free[d];
    for (uint32_t k = p->in_first[n]; k < p->in_first[n + 1]; k++) {
      uint32_t t = p->in_tensor[k], from = p->tensor_node[t];
      if ((placed >> from & 1) == 0) return INT64_MAX;
      uint32_t link = p->link_of[device[from] * DEVICES + d];
      int64_t there =
          end[from] +
          (device[from] == d
               ? 0
               : weir_place_copy_ns(&p->links[link], p->tensor_bytes[t]));
      if (there > start) start = there;
    }
    placed |= 1u << n;
    end[n] = free[d] = start + weir_place_cost(p, n, d);
    if (end[n] > last) last = end[n];
  }
  return last;
}

static bool together(const weir_place_problem *p, const uint32_t *device) {
  for (uint32_t n = 0; n < NODES; n++)
    for (uint32_t m = 0; m < n; m++)
      if (p->group[n] != WEIR_PLACE_NONE && p->group[n] == p->group[m] &&
          device[n] != device[m])
        return false;
  return true;
}

static int64_t best_order(const weir_place_problem *p, const uint32_t *device) {
  int64_t best = INT64_MAX;
  for (uint32_t code = 0; code < 120; code++) { /* the code-th permutation */
    uint32_t order[NODES], left[NODES] = {0, 1, 2, 3, 4}, rest = code;
    for (uint32_t i = 0, count = NODES; i < NODES; i++, count--) {
      uint32_t k = rest % count;
      rest /= count;
      order[i] = left[k];
      memmove(left + k, left + k + 1, (count - 1 - k) * sizeof *left);
    }
    int64_t got = finish_of(p, order, device);
    if (got < best) best = got;
  }
  return best;
}

static int64_t truth(const weir_place_problem *p) {
  int64_t best = INT64_MAX;
  for (uint32_t code = 0; code < 243; code++) {
    uint32_t device[NODES], rest = code;
    for (uint32_t n = 0; n < NODES; n++, rest /= DEVICES)
      device[n] = rest % DEVICES;
    if (!together(p, device)) continue;
    int64_t got = best_order(p, device);
    if (got < best) best = got;
  }
  return best;
}

static void the_bound_is_the_truth(void **state) {
  (void)state;
  for (uint32_t seed = 1; seed < 120; seed++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_place_problem *p =
        make(weir_allocator_system(), seed, NODES, false, &err);
    assert_non_null(p);
    int64_t want = truth(p);
    weir_exact_result r;
    weir_place_options o = {0};
    /* From a bound that is too high, from the truth, and from below it. */
    for (int64_t upper = want + 20; upper >= want - 1; upper -= 7) {
      if (upper < 1) break;
      weir_exact_limits limits = {0, upper, 1000000, &o};
      assert_ok(
          weir_exact_search(weir_allocator_system(), p, &limits, &r, &err),
          &err);
      assert_true(r.closed);
      assert_int_equal(r.bound_ns, upper < want ? upper : want);
      assert_int_equal(r.found, want < upper);
      uint32_t device[NODES];
      memcpy(device, r.device, sizeof device);
      if (r.found) assert_int_equal(finish_of(p, r.order, device), want);
    }
    weir_place_problem_release(p);
  }
}

/* The placer's own answer: proved, on links of any kind never below. */
static void small_plans_are_called_optimal(void **state) {
  (void)state;
  for (uint32_t seed = 1; seed < 60; seed++)
    for (int exclusive = 0; exclusive < 2; exclusive++) {
      weir_error err = WEIR_ERROR_INIT;
      weir_place_problem *p =
          make(weir_allocator_system(), seed, NODES, exclusive != 0, &err);
      weir_place_options o = {.moves = 5000};
      weir_place_result r;
      int64_t want = truth(p);
      assert_ok(weir_place_solve(weir_allocator_system(), p, &o, &r, &err),
                &err);
      assert_ok(
          weir_place_check(weir_allocator_system(), p, r.plan, NULL, &err),
          &err);
      assert_int_equal(r.bounds.best_ns, want);
      assert_true(r.plan->makespan_ns >= want);
      if (exclusive == 0) assert_int_equal(r.plan->makespan_ns, want);
      weir_place_plan_release(r.plan);
      weir_place_problem_release(p);
    }
}

static void few_steps_prove_nothing(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_exact_result r;
  weir_place_options o = {0};
  weir_place_problem *p = make(weir_allocator_system(), 7, 32, false, &err);
  assert_true(weir_exact_fits(p));
  weir_exact_limits limits = {0, 1000, 3, &o};
  assert_ok(weir_exact_search(weir_allocator_system(), p, &limits, &r, &err),
            &err);
  assert_false(r.closed);
  assert_true(r.steps <= 3);
  weir_place_problem_release(p);
  p = make(weir_allocator_system(), 7, 33, false, &err);
  assert_false(weir_exact_fits(p));
  weir_place_problem_release(p);
}

static weir_status prove_all(const weir_allocator *a, weir_error *err) {
  weir_exact_result r;
  weir_place_options o = {0};
  weir_place_problem *p = make(a, 4, NODES, false, err);
  if (p == NULL) return WEIR_RESOURCE_EXHAUSTED;
  weir_exact_limits limits = {0, 100, 1000, &o};
  weir_status s = weir_exact_search(a, p, &limits, &r, err);
  weir_place_problem_release(p);
  return s;
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  weir_counted_allocator c;
  for (uint64_t k = 1;; k++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_counted_allocator_init(&c, NULL);
    c.fail_at = k;
    weir_status s = prove_all(&c.base, &err);
    assert_int_equal(atomic_load(&c.live_bytes), 0);
    if (s == WEIR_OK) break;
    assert_string_equal(err.id, "W6001");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_bound_is_the_truth),
      cmocka_unit_test(small_plans_are_called_optimal),
      cmocka_unit_test(few_steps_prove_nothing),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
