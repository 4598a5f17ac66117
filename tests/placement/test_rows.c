/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "placement/check.h"
#include "placement/report/figures.h"
#include "placement/solve/objective.h"
#include "placement/solve/placer.h"
#include "tests/check.h"

/* The lists of placers and objectives, and their null rows. */

extern const weir_placer weir_placer_null;
extern const weir_place_objective weir_objective_null;

enum { NODES = 24, DEVICES = 3 };

/* A chain with side ways; every third node is in one of two groups. */
static weir_place_problem *make(const weir_allocator *a, weir_error *err) {
  weir_place_builder *b = NULL;
  weir_place_problem *p = NULL;
  if (weir_place_builder_create(a, 1, &b, err) != WEIR_OK) return NULL;
  for (int d = 0; d < DEVICES; d++)
    weir_place_add_device(b,
                          &(weir_place_device){WEIR_SV_LIT("d"), 0, INT64_MAX});
  weir_place_connect_all(b, &(weir_place_link){10, 1000000, true});
  for (uint32_t n = 0; n < NODES; n++) {
    int64_t cost = 100 + 7 * (int64_t)(n % 5);
    weir_place_node_spec spec = {.cost = &cost,
                                 .group = n % 3 == 0 ? n % 2 : WEIR_PLACE_NONE};
    weir_place_add_node(b, &spec);
    weir_place_add_tensor(b, n, 16);
    if (n > 0) weir_place_add_use(b, n, n - 1 - n % 2 * (n > 1));
  }
  weir_place_builder_finish(b, &p, err);
  weir_place_builder_release(b);
  return p;
}

static void names_are_read(void **state) {
  (void)state;
  const weir_placer *got = NULL;
  uint64_t seed = 7;
  assert_string_equal(weir_placer_at(0)->name, "search");
  for (size_t i = 0; weir_placer_at(i) != NULL; i++) {
    const weir_placer *p = weir_placer_at(i);
    assert_true(weir_placer_parse(weir_sv_from(p->name), &got, &seed));
    assert_ptr_equal(got, p);
    assert_ptr_equal(weir_placer_find(p->name), p);
    assert_int_equal(seed, 0);
    assert_true(strlen(p->summary) > 0);
  }
  assert_true(weir_placer_parse(WEIR_SV_LIT("random:42"), &got, &seed));
  assert_ptr_equal(got, weir_placer_find("random"));
  assert_int_equal(seed, 42);
  static const char *const bad[] = {"",
                                    "rand",
                                    "random:",
                                    "random:x",
                                    "random:-1",
                                    "search:5",
                                    "first:1",
                                    "random:1 ",
                                    ":1",
                                    "null",
                                    "random:1234567890123456789"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_false(weir_placer_parse(weir_sv_from(bad[i]), &got, &seed));
  assert_null(weir_placer_find("null"));
}

static void forms_are_for_messages(void **state) {
  (void)state;
  char text[256], little[8];
  assert_string_equal(weir_placer_forms(text, sizeof text),
                      "search, first, round_robin or random[:SEED]");
  assert_string_equal(weir_placer_forms(little, sizeof little), "search,");
}

static void objectives_are_found(void **state) {
  (void)state;
  assert_string_equal(weir_place_objective_at(0)->name, "latency");
  assert_null(weir_place_objective_at(0)->goal);
  assert_non_null(weir_place_objective_at(0)->bound);
  for (size_t i = 0; weir_place_objective_at(i) != NULL; i++) {
    const weir_place_objective *o = weir_place_objective_at(i);
    assert_ptr_equal(weir_place_objective_find(o->name), o);
    assert_true(strlen(o->summary) > 0 && strlen(o->key) > 0);
    assert_true(o->bound_key == NULL || o->bound != NULL);
    assert_true(i == 0 || (o->goal != NULL && o->label != NULL));
  }
  assert_null(weir_place_objective_find("null"));
}

/* Every placer's plan is sound; the null one's is all on the last device. */
static void placers_make_sound_plans(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_problem *p = make(weir_allocator_system(), &err);
  assert_non_null(p);
  for (size_t i = 0;; i++) {
    const weir_placer *placer =
        i == 0 ? &weir_placer_null : weir_placer_at(i - 1);
    if (placer == NULL) break;
    weir_place_options o = {.placer = placer, .seed = 3, .moves = 20};
    weir_place_result r;
    assert_ok(weir_place_solve(weir_allocator_system(), p, &o, &r, &err), &err);
    assert_ok(weir_place_check(weir_allocator_system(), p, r.plan, NULL, &err),
              &err);
    assert_true(r.bounds.best_ns > 0);
    assert_true(r.first_ns >= r.plan->makespan_ns);
    for (uint32_t n = 0; i == 0 && n < NODES; n++)
      assert_int_equal(r.plan->device[n], DEVICES - 1);
    weir_place_plan_release(r.plan);
  }
  weir_place_problem_release(p);
}

static void the_null_objective_moves_nothing(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  const weir_allocator *a = weir_allocator_system();
  weir_place_problem *p = make(a, &err);
  weir_place_result r, before;
  weir_place_options o = {.moves = 100};
  int64_t peaks[DEVICES];
  weir_place_figures *f = NULL;
  assert_ok(weir_place_solve(a, p, NULL, &before, &err), &err);
  assert_ok(weir_place_solve(a, p, NULL, &r, &err), &err);
  assert_ok(weir_place_improve(a, p, &weir_objective_null, &o, &r, &err), &err);
  assert_int_equal(r.plan->makespan_ns, before.plan->makespan_ns);
  assert_ok(weir_place_check(a, p, r.plan, peaks, &err), &err);
  weir_place_view view = {.alloc = a,
                          .problem = p,
                          .plan = r.plan,
                          .bounds = &r.bounds,
                          .peaks = peaks};
  assert_ok(weir_place_measure(&view, 4, &weir_objective_null, &f, &err), &err);
  assert_int_equal(f->objective->value(f), 0);
  weir_place_figures_release(f);
  weir_place_plan_release(before.plan);
  weir_place_plan_release(r.plan);
  weir_place_problem_release(p);
}

static weir_status solve_all(const weir_allocator *a, weir_error *err) {
  weir_status s = WEIR_OK;
  weir_place_problem *p = make(a, err);
  if (p == NULL) return WEIR_RESOURCE_EXHAUSTED;
  for (size_t i = 1; weir_placer_at(i) != NULL && s == WEIR_OK; i++) {
    weir_place_options o = {.placer = weir_placer_at(i), .seed = 3};
    weir_place_result r;
    s = weir_place_solve(a, p, &o, &r, err);
    if (s == WEIR_OK) weir_place_plan_release(r.plan);
  }
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
    weir_status s = solve_all(&c.base, &err);
    assert_int_equal(atomic_load(&c.live_bytes), 0);
    if (s == WEIR_OK) break;
    assert_string_equal(err.id, "W6001");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_are_read),
      cmocka_unit_test(forms_are_for_messages),
      cmocka_unit_test(objectives_are_found),
      cmocka_unit_test(placers_make_sound_plans),
      cmocka_unit_test(the_null_objective_moves_nothing),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
