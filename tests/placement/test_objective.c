/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "placement/check.h"
#include "placement/report/figures.h"
#include "placement/solve/objective.h"
#include "tests/check.h"

enum { DEVICES = 3 };

typedef struct shape {
  uint32_t nodes, seed;
  int64_t cap;
  bool groups, processor; /* device 0 has no copy load */
} shape;

static bool is(const weir_place_objective *o, const char *name) {
  return strcmp(o->name, name) == 0;
}

/* A random graph: a processor and two accelerators ten times as fast. */
static weir_place_problem *make(const weir_allocator *a, const shape *s,
                                weir_error *err) {
  weir_place_builder *b = NULL;
  weir_place_problem *p = NULL;
  uint32_t x = s->seed * 2654435761u + 1;
  if (weir_place_builder_create(a, 2, &b, err) != WEIR_OK) return NULL;
  for (uint32_t d = 0; d < DEVICES; d++)
    weir_place_add_device(b, &(weir_place_device){WEIR_SV_LIT("d"), d > 0,
                                                  d == 0 ? INT64_MAX : s->cap});
  if (s->processor) weir_place_no_copy_load(b, 0);
  weir_place_connect_all(b, &(weir_place_link){0, 1000000, false});
  for (uint32_t n = 0; n < s->nodes; n++) {
    int64_t cost[2] = {10 * (1 + (x >> 4) % 9), 1 + (x >> 9) % 9};
    weir_place_node_spec spec = {
        .cost = cost,
        .resident_bytes = 10,
        .group = s->groups && n % 3 == 0 ? (x >> 20) % 2 : WEIR_PLACE_NONE};
    uint32_t id = weir_place_add_node(b, &spec);
    for (uint32_t k = 0; k < n; k++)
      if (((x >> (12 + k % 8)) & 3) == 0) weir_place_add_use(b, id, k);
    weir_place_keep_tensor(b, weir_place_add_tensor(b, id, (x >> 16) % 4), id);
    x = x * 1664525u + 1013904223u;
  }
  weir_place_builder_finish(b, &p, err);
  weir_place_builder_release(b);
  return p;
}

static weir_status improve(const weir_allocator *a, const weir_place_problem *p,
                           const weir_place_objective *objective,
                           uint64_t moves, weir_place_result *r,
                           weir_place_figures **out, weir_error *err) {
  int64_t peaks[DEVICES];
  weir_place_options o = {.moves = moves};
  *out = NULL;
  WEIR_TRY(weir_place_solve(a, p, NULL, r, err));
  weir_status s = weir_place_improve(a, p, objective, &o, r, err);
  if (s == WEIR_OK) s = weir_place_check(a, p, r->plan, peaks, err);
  weir_place_view view = {.alloc = a,
                          .problem = p,
                          .plan = r->plan,
                          .bounds = &r->bounds,
                          .peaks = peaks};
  if (s == WEIR_OK) s = weir_place_measure(&view, 4, objective, out, err);
  if (s == WEIR_OK) return s;
  weir_place_plan_release(r->plan);
  return s;
}

/* The largest load from its definition, sharing nothing with load.c. */
static int64_t largest_load(const weir_place_problem *p, const uint32_t *device,
                            int64_t *moved) {
  int64_t most = 0;
  *moved = 0;
  for (uint32_t d = 0; d < p->device_count; d++) {
    int64_t load = 0;
    for (uint32_t n = 0; n < p->node_count; n++)
      if (device[n] == d) load += weir_place_cost(p, n, d);
    for (uint32_t t = 0; t < p->tensor_count; t++) {
      bool here = device[p->tensor_node[t]] == d, used = false, sent = false;
      for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++) {
        used |= device[p->use_node[u]] == d;
        sent |= device[p->use_node[u]] != d;
      }
      if (!here && used) *moved += p->tensor_bytes[t];
      if (!p->no_copy_load[d] && (here ? sent : used))
        load += p->tensor_bytes[t]; /* a byte takes a nanosecond */
    }
    if (load > most) most = load;
  }
  return most;
}

/* The best period, memory and bytes of all splits that keep the caps. */
static void best_of_all(const weir_place_problem *p, int64_t *period,
                        int64_t *memory, int64_t *moved) {
  uint32_t device[8], total = 1;
  *period = *memory = *moved = INT64_MAX;
  for (uint32_t n = 0; n < p->node_count; n++) total *= DEVICES;
  for (uint32_t code = 0; code < total; code++) {
    int64_t bytes[DEVICES] = {0}, m, worst = 0;
    bool fits = true;
    uint32_t left = code, group[2] = {9, 9};
    for (uint32_t n = 0; n < p->node_count; n++, left /= DEVICES) {
      device[n] = left % DEVICES;
      bytes[device[n]] += p->resident_bytes[n];
      uint32_t g = p->group[n];
      if (g == WEIR_PLACE_NONE) continue;
      fits &= group[g] == 9 || group[g] == device[n];
      group[g] = device[n];
    }
    for (uint32_t d = 0; d < DEVICES; d++) {
      fits &= bytes[d] <= p->devices[d].memory_bytes;
      if (bytes[d] > worst) worst = bytes[d];
    }
    int64_t load = largest_load(p, device, &m);
    if (!fits) continue;
    if (load < *period) *period = load;
    if (worst < *memory) *memory = worst;
    if (m < *moved) *moved = m;
  }
}

static void small_problems_reach_the_best_of_all(void **state) {
  (void)state;
  for (uint32_t seed = 1; seed < 40; seed++) {
    weir_error err = WEIR_ERROR_INIT;
    shape s = {6, seed, INT64_MAX, seed % 3 == 0, seed % 2 == 0};
    weir_place_problem *p = make(weir_allocator_system(), &s, &err);
    assert_non_null(p);
    int64_t period, memory, moved, truth;
    best_of_all(p, &period, &memory, &moved);
    for (size_t i = 0; weir_place_objective_at(i) != NULL; i++) {
      const weir_place_objective *o = weir_place_objective_at(i);
      weir_place_result r;
      weir_place_figures *f;
      assert_ok(improve(weir_allocator_system(), p, o, 20000, &r, &f, &err),
                &err);
      assert_int_equal(f->period_ns, largest_load(p, r.plan->device, &truth));
      assert_int_equal(f->moved_bytes, truth);
      assert_int_equal(f->latency_ns, r.plan->makespan_ns);
      if (is(o, "throughput")) assert_int_equal(f->period_ns, period);
      if (is(o, "moved")) assert_int_equal(f->moved_bytes, moved);
      /* Copies are in the peak too: a few bytes. */
      if (is(o, "memory")) assert_true(f->peak_bytes < memory + 10);
      assert_true(f->period_bound_ns <= period);
      weir_place_figures_release(f);
      weir_place_plan_release(r.plan);
    }
    weir_place_problem_release(p);
  }
}

/* Two of six nodes fit on an accelerator, with room for copies. */
static void caps_are_kept(void **state) {
  (void)state;
  for (uint32_t seed = 1; seed < 20; seed++) {
    weir_error err = WEIR_ERROR_INIT;
    shape s = {6, seed, 29, false, true};
    weir_place_problem *p = make(weir_allocator_system(), &s, &err);
    int64_t period, memory, moved;
    best_of_all(p, &period, &memory, &moved);
    weir_place_result r;
    weir_place_figures *f;
    weir_status got =
        improve(weir_allocator_system(), p,
                weir_place_objective_find("throughput"), 20000, &r, &f, &err);
    assert_ok(got, &err); /* the checker has seen the caps */
    assert_true(f->period_ns >= period);
    weir_place_figures_release(f);
    weir_place_plan_release(r.plan);
    weir_place_problem_release(p);
  }
}

/* Four equal nodes in a row, two devices: two stages of two nodes and a copy
 * of 5 on both. With 4 micro-batches the bubble is 1 / (4 + 2 - 1). */
static void a_pipeline_by_hand(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_builder *b = NULL;
  weir_place_problem *p = NULL;
  int64_t ten = 10;
  assert_ok(weir_place_builder_create(weir_allocator_system(), 1, &b, &err),
            &err);
  for (int d = 0; d < 2; d++)
    weir_place_add_device(b,
                          &(weir_place_device){WEIR_SV_LIT("d"), 0, INT64_MAX});
  weir_place_connect_all(b, &(weir_place_link){0, 1000000, true});
  for (uint32_t n = 0; n < 4; n++) {
    weir_place_node_spec spec = {
        .cost = &ten, .resident_bytes = 100, .group = WEIR_PLACE_NONE};
    weir_place_add_node(b, &spec);
    weir_place_add_tensor(b, n, 5);
    if (n > 0) weir_place_add_use(b, n, n - 1);
  }
  assert_ok(weir_place_builder_finish(b, &p, &err), &err);
  weir_place_builder_release(b);
  weir_place_result r;
  weir_place_figures *f;
  assert_ok(improve(weir_allocator_system(), p,
                    weir_place_objective_find("throughput"), 0, &r, &f, &err),
            &err);
  assert_string_equal(r.plan->placer, "chain split");
  assert_int_equal(f->period_ns, 25);
  assert_int_equal(f->period_bound_ns, 25); /* no cut is free */
  assert_string_equal(f->period_bound, "copies");
  assert_int_equal(f->stage_count, 2);
  assert_int_equal(f->batches_ns, 25 + 4 * 25);
  assert_true(f->bubble > 0.2 - 1e-9 && f->bubble < 0.2 + 1e-9);
  assert_int_equal(f->stages[0].device, r.plan->device[0]);
  assert_int_equal(f->stages[0].batches, 2);
  assert_int_equal(f->stages[1].batches, 1);
  assert_int_equal(f->stages[0].memory_bytes, 200 + 2 * 10);
  assert_int_equal(f->stages[1].memory_bytes, 200 + 10);
  weir_place_figures_release(f);
  weir_place_plan_release(r.plan);
  weir_place_problem_release(p);
}

static void the_same_input_gives_the_same_split(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  shape s = {200, 7, 1500, true, true};
  weir_place_problem *p = make(weir_allocator_system(), &s, &err);
  weir_place_result r[2];
  weir_place_figures *f[2];
  for (int i = 0; i < 2; i++)
    assert_ok(improve(weir_allocator_system(), p,
                      weir_place_objective_find("throughput"), 30000, &r[i],
                      &f[i], &err),
              &err);
  assert_memory_equal(r[0].plan->device, r[1].plan->device,
                      200 * sizeof *r[0].plan->device);
  assert_true(f[0]->period_ns <= r[0].plan->makespan_ns);
  for (int i = 0; i < 2; i++) {
    weir_place_figures_release(f[i]);
    weir_place_plan_release(r[i].plan);
  }
  weir_place_problem_release(p);
}

/* A large graph is cut in blocks, and no split is worse than one device. */
static void a_large_graph_is_split(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  shape s = {3000, 3, INT64_MAX, true, false};
  weir_place_problem *p = make(weir_allocator_system(), &s, &err);
  weir_place_result r;
  weir_place_figures *f;
  assert_ok(improve(weir_allocator_system(), p,
                    weir_place_objective_find("throughput"), 0, &r, &f, &err),
            &err);
  int64_t one = 0;
  for (uint32_t n = 0; n < p->node_count; n++) one += weir_place_cost(p, n, 1);
  assert_true(f->period_ns <= one);
  assert_true(f->period_ns >= f->period_bound_ns);
  weir_place_figures_release(f);
  weir_place_plan_release(r.plan);
  weir_place_problem_release(p);
}

static weir_status all_of_it(const weir_allocator *a, weir_error *err) {
  shape s = {5, 3, 1000, true, true};
  weir_status status = WEIR_OK;
  weir_place_problem *p = make(a, &s, err);
  if (p == NULL) return WEIR_RESOURCE_EXHAUSTED;
  for (size_t i = 0; weir_place_objective_at(i) != NULL && status == WEIR_OK;
       i++) {
    const weir_place_objective *o = weir_place_objective_at(i);
    weir_place_result r;
    weir_place_figures *f;
    status = improve(a, p, o, 50, &r, &f, err);
    if (status != WEIR_OK) break;
    weir_place_figures_release(f);
    weir_place_plan_release(r.plan);
  }
  weir_place_problem_release(p);
  return status;
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
      cmocka_unit_test(small_problems_reach_the_best_of_all),
      cmocka_unit_test(caps_are_kept),
      cmocka_unit_test(a_pipeline_by_hand),
      cmocka_unit_test(the_same_input_gives_the_same_split),
      cmocka_unit_test(a_large_graph_is_split),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
