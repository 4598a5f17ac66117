/* SPDX-License-Identifier: Apache-2.0 */
/* Large problems: clusters, and plans beside an expert's. */
#include <stdlib.h>
#include <string.h>

#include "placement/check.h"
#include "placement/solve/levels/coarsen.h"
#include "placement/solve/levels/multilevel.h"
#include "placement/solve/levels/split.h"
#include "placement/solve/search.h"
#include "tests/check.h"
#include "tests/counted.h"
#include "tests/placement/hand_plan.h"

enum { DEVICES = 4 };

/* The network that a cluster has where nothing is said about it. */
static const weir_place_link slow = {
    .latency_ns = 50000, .fs_per_byte = 800000, .exclusive = true};
static const char *const kinds[] = {"cholesky", "pipeline", "replicas"};

static weir_place_problem *family(const char *kind, uint64_t nodes) {
  weir_error err = WEIR_ERROR_INIT;
  weir_place_problem *p = NULL;
  assert_ok(hand_plan_problem(weir_allocator_system(), kind, nodes, DEVICES,
                              &slow, &p, &err),
            &err);
  return p;
}

static weir_place_result solved(const weir_place_problem *p,
                                const weir_place_options *o) {
  weir_error err = WEIR_ERROR_INIT;
  weir_place_result r;
  assert_ok(weir_place_solve(weir_allocator_system(), p, o, &r, &err), &err);
  assert_ok(weir_place_check(weir_allocator_system(), p, r.plan, NULL, &err),
            &err);
  assert_true(r.plan->makespan_ns >= r.bounds.best_ns);
  return r;
}

/* About so many units; the first argument of the program. */
static uint64_t units = 10000;

static void as_good_as_an_expert(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_place_problem *p = family(kinds[k], units);
    int64_t hand_ns = 0;
    assert_ok(
        hand_plan_step(weir_allocator_system(), kinds[k], p, &hand_ns, &err),
        &err);
    weir_place_options o = {.moves = weir_place_default_moves(p)};
    assert_true(o.moves > 0);
    weir_place_result r = solved(p, &o);
    assert_true(r.plan->makespan_ns * 10 <= hand_ns * 13);
    assert_true(r.plan->makespan_ns <= r.first_ns);
    assert_true(r.moves <= o.moves + 1);
    weir_place_plan_release(r.plan);
    weir_place_problem_release(p);
  }
}

static bool after_some(void *self) {
  return --*(int *)self < 0;
}

/* A stop at any moment leaves a sound plan, no worse than the portfolio's; the
 * same moves give the same plan. */
static void stopped_or_repeated(void **state) {
  (void)state;
  weir_place_problem *p = family("pipeline", 5000);
  size_t bytes = p->node_count * sizeof(uint32_t);
  weir_place_options o = {.moves = 30};
  weir_place_result a = solved(p, &o), b = solved(p, &o);
  assert_memory_equal(a.plan->device, b.plan->device, bytes);
  assert_memory_equal(a.plan->start_ns, b.plan->start_ns, 2 * bytes);
  for (int asks = 0; asks < 60; asks += 7) {
    int left = asks;
    o.stop = after_some;
    o.stop_self = &left;
    weir_place_result r = solved(p, &o);
    assert_true(r.plan->makespan_ns <= r.first_ns);
    weir_place_plan_release(r.plan);
  }
  weir_place_plan_release(a.plan);
  weir_place_plan_release(b.plan);
  weir_place_problem_release(p);
}

/* ---- Clusters */

enum { MIXED = 300 };

/* Two classes, one cap, groups, sets, and nodes without a kernel. */
static weir_place_problem *mixed(const weir_allocator *a, uint32_t seed,
                                 uint32_t nodes, weir_error *err) {
  weir_place_builder *b = NULL;
  weir_place_problem *p = NULL;
  uint32_t x = seed * 2654435761u + 1, two[] = {1, 2};
  if (weir_place_builder_create(a, 2, &b, err) != WEIR_OK) return NULL;
  for (uint32_t d = 0; d < DEVICES; d++)
    weir_place_add_device(
        b, &(weir_place_device){WEIR_SV_LIT("d"), d % 2,
                                seed % 2 == 0 ? INT64_MAX : 1000000});
  weir_place_connect_all(
      b, &(weir_place_link){
             .latency_ns = 100, .fs_per_byte = 1000000, .exclusive = true});
  uint32_t set = weir_place_add_set(b, two, 2);
  for (uint32_t n = 0; n < nodes; n++) {
    int64_t cost[2] = {100 + (x >> 4) % 500, 100 + (x >> 9) % 700};
    if (x % 7 == 0) cost[0] = WEIR_PLACE_NO_KERNEL;
    weir_place_node_spec spec = {
        .cost = cost,
        .resident_bytes = x % 20,
        .set = x % 5 == 0 ? set : 0,
        .group = (x >> 7) % 10 == 1 ? (x >> 12) % 3 : WEIR_PLACE_NONE};
    if (spec.group != WEIR_PLACE_NONE) spec.set = 0;
    if (spec.group != WEIR_PLACE_NONE) cost[0] = 100;
    uint32_t id = weir_place_add_node(b, &spec);
    for (uint32_t k = 0; k < (x >> 3) % 4 && k < n; k++)
      weir_place_add_use(b, id, n - 1 - (x >> (k + 5)) % (n < 40 ? n : 40));
    weir_place_add_tensor(b, id, (x >> 16) % 3000);
    x = x * 1664525u + 1013904223u;
  }
  weir_place_builder_finish(b, &p, err);
  weir_place_builder_release(b);
  return p;
}

/* The coarse problem has the work of the fine one, its nodes are alike, and an
 * edge of the fine one is an edge or nothing. */
static void check_coarse(const weir_place_problem *p, const weir_coarse *c,
                         int64_t most_ns) {
  const weir_place_problem *q = c->problem;
  int64_t work = 0, coarse_work = 0, most = 0;
  for (uint32_t n = 0; n < p->node_count; n++) {
    uint32_t to = c->cluster[n];
    assert_true(to < q->node_count);
    work += weir_coarsen_work(p, n);
    if (weir_coarsen_work(p, n) > most) most = weir_coarsen_work(p, n);
    for (uint32_t d = 0; d < DEVICES; d++)
      assert_int_equal(weir_place_cost(p, n, d) == WEIR_PLACE_NO_KERNEL,
                       weir_place_cost(q, to, d) == WEIR_PLACE_NO_KERNEL);
    assert_int_equal(p->group[n] == WEIR_PLACE_NONE,
                     q->group[to] == WEIR_PLACE_NONE);
    for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1]; i++) {
      uint32_t from = c->cluster[p->tensor_node[p->in_tensor[i]]];
      assert_true(from <= to); /* numbered topologically: there is no cycle */
      bool found = from == to;
      for (uint32_t k = q->in_first[to]; k < q->in_first[to + 1]; k++)
        found |= q->tensor_node[q->in_tensor[k]] == from;
      assert_true(found);
    }
  }
  for (uint32_t n = 0; n < q->node_count; n++) {
    coarse_work += weir_coarsen_work(q, n);
    if (p->class_count == 1)
      assert_true(weir_coarsen_work(q, n) <= (most > most_ns ? most : most_ns));
  }
  assert_true(coarse_work >= work);
  if (p->class_count == 1) assert_int_equal(coarse_work, work);
}

static void check_levels(weir_place_problem *p, int64_t most_ns) {
  weir_error err = WEIR_ERROR_INIT;
  const weir_place_problem *now = p;
  weir_coarse last = {0};
  for (int level = 0; level < 30; level++) {
    weir_coarse next;
    assert_ok(weir_coarsen(weir_allocator_system(), now, most_ns, &next, &err),
              &err);
    if (next.problem != NULL) check_coarse(now, &next, most_ns);
    weir_coarse_release(weir_allocator_system(), &last);
    last = next;
    now = next.problem;
    if (now == NULL) break;
  }
  assert_null(now);
  weir_place_problem_release(p);
}

static void clusters_keep_the_graph(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
    check_levels(family(kinds[k], 3000), 40000);
  check_levels(family("layered", 2000), 100000);
  check_levels(family("fft", 2000), 100000);
  check_levels(family("stencil", 70000), 20000); /* large */
  check_levels(family("pipeline", 70000), 400000);
  for (uint32_t seed = 0; seed < 20; seed++) {
    weir_place_problem *p = mixed(weir_allocator_system(), seed, MIXED, &err);
    assert_non_null(p);
    check_levels(p, 5000);
  }
}

/* Large problems with groups, sets and caps are placed soundly. */
static void demands_are_kept(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  for (uint32_t seed = 0; seed < 2; seed++) {
    weir_place_problem *p = mixed(weir_allocator_system(), seed, 4200, &err);
    assert_non_null(p);
    weir_place_options o = {.moves = 8};
    weir_place_result r = solved(p, &o);
    assert_true(r.plan->makespan_ns <= r.first_ns);
    weir_place_plan_release(r.plan);
    weir_place_problem_release(p);
  }
}

/* Each device gets a stretch, slow ones a shorter one. */
static void stretches_of_an_order(void **state) {
  (void)state;
  enum { CHAIN = 40 };
  weir_error err = WEIR_ERROR_INIT;
  weir_place_builder *b = NULL;
  weir_place_problem *p = NULL;
  assert_ok(weir_place_builder_create(weir_allocator_system(), 2, &b, &err),
            &err);
  for (uint32_t d = 0; d < 2; d++)
    weir_place_add_device(b,
                          &(weir_place_device){WEIR_SV_LIT("d"), d, INT64_MAX});
  weir_place_connect_all(b, &slow);
  static const int64_t cost[] = {30000, 10000}; /* the second is faster */
  for (uint32_t n = 0; n < CHAIN; n++) {
    weir_place_add_node(
        b, &(weir_place_node_spec){.cost = cost, .group = WEIR_PLACE_NONE});
    if (n > 0) weir_place_add_use(b, n, n - 1);
    weir_place_add_tensor(b, n, n == 8 ? 10 : 1000000); /* cheap to cut */
  }
  assert_ok(weir_place_builder_finish(b, &p, &err), &err);
  weir_place_builder_release(b);
  for (int rule = 0; rule < WEIR_SPLIT_RULES; rule++) {
    uint32_t room[3 * CHAIN], device[CHAIN];
    int64_t key[CHAIN];
    weir_split(p, (weir_split_rule)rule, room, key, device);
    for (uint32_t n = 0; n < CHAIN; n++) {
      assert_int_equal(device[n], n > 8);
      assert_true(n == 0 || key[n] < key[n - 1]);
    }
  }
  weir_place_problem_release(p);
}

/* ---- Memory that runs out */

static weir_status take_any(void *self, const weir_multilevel_try *t,
                            bool *out_better) {
  (void)t;
  ++*(int *)self;
  *out_better = true;
  return WEIR_OK;
}

static weir_status run_all(const weir_allocator *a, int *tries,
                           weir_error *err) {
  weir_place_problem *p = mixed(a, 2, MIXED, err);
  int64_t key[MIXED];
  uint32_t device[MIXED];
  uint64_t moves = 0;
  weir_place_options o = {.moves = 8};
  if (p == NULL) return err->code;
  weir_multilevel m = {.alloc = a,
                       .p = p,
                       .options = &o,
                       .key = key,
                       .device = device,
                       .try_one = take_any,
                       .self = tries};
  weir_status s = weir_multilevel_run(&m, &moves, err);
  weir_place_problem_release(p);
  return s;
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  weir_status s = WEIR_RESOURCE_EXHAUSTED;
  for (size_t k = 1; s != WEIR_OK; k++) {
    weir_counted_allocator c;
    weir_error err = WEIR_ERROR_INIT;
    int tries = 0;
    weir_counted_allocator_init(&c, NULL);
    c.fail_at = k;
    s = run_all(&c.base, &tries, &err);
    assert_int_equal(atomic_load(&c.live_bytes), 0);
    if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
    if (s == WEIR_OK) assert_true(tries > 2);
    assert_true(k < 20000);
  }
}

/* With a number of units only the comparison of that size. */
int main(int argc, char **argv) {
  const struct CMUnitTest only[] = {cmocka_unit_test(as_good_as_an_expert)};
  if (argc > 1) {
    units = strtoull(argv[1], NULL, 10);
    return cmocka_run_group_tests(only, NULL, NULL);
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(as_good_as_an_expert),
      cmocka_unit_test(stopped_or_repeated),
      cmocka_unit_test(clusters_keep_the_graph),
      cmocka_unit_test(demands_are_kept),
      cmocka_unit_test(stretches_of_an_order),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
