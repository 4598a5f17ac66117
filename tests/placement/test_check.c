/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/check.h"

#include <string.h>

#include "placement/plan.h"
#include "runtime/base/table.h"
#include "tests/check.h"

/* The checker over many events: nodes stand in no order of time, one directly
 * after the other on their device, and hold a tensor while they run. */

enum { COST = 3, STEP = 7 /* no divisor of the counts */ };

typedef struct scene {
  weir_place_problem *problem;
  weir_place_plan *plan;
} scene;

static int64_t bytes_of(uint32_t node) {
  return 100 + node % 900;
}

static void make_problem(scene *s, uint32_t count) {
  weir_error err = WEIR_ERROR_INIT;
  weir_place_builder *b = NULL;
  const weir_allocator *a = weir_allocator_system();
  assert_ok(weir_place_builder_create(a, 1, &b, &err), &err);
  for (uint32_t d = 0; d < 2; d++)
    weir_place_add_device(b,
                          &(weir_place_device){WEIR_SV_LIT("d"), 0, INT64_MAX});
  weir_place_connect_all(b, &(weir_place_link){.latency_ns = 1});
  for (uint32_t n = 0; n < count; n++) {
    const int64_t cost[1] = {COST};
    uint32_t id = weir_place_add_node(
        b, &(weir_place_node_spec){.cost = cost, .group = WEIR_PLACE_NONE});
    weir_place_add_tensor(b, id, bytes_of(n));
  }
  assert_ok(weir_place_builder_finish(b, &s->problem, &err), &err);
  weir_place_builder_release(b);
}

/* |from|: when the first node starts. */
static void open_scene(scene *s, uint32_t count, int64_t from) {
  weir_error err = WEIR_ERROR_INIT;
  make_problem(s, count);
  assert_ok(weir_place_plan_create(weir_allocator_system(), s->problem,
                                   &s->plan, &err),
            &err);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t n = (uint32_t)((uint64_t)i * STEP % count);
    s->plan->device[n] = i % 2;
    s->plan->start_ns[n] = from + COST * (i / 2);
    s->plan->end_ns[n] = s->plan->start_ns[n] + COST;
  }
  s->plan->makespan_ns = from + COST * ((count + 1) / 2);
}

static void close_scene(scene *s) {
  weir_place_plan_release(s->plan);
  weir_place_problem_release(s->problem);
}

static const struct {
  uint32_t count;
  int64_t from;
} kSizes[] = {{2, 0},
              {60, 0},
              {60, INT64_MAX / 2},
              {1000, INT64_C(1) << 40},
              {6000, 0},
              {6000, INT64_MAX - 100000}};

/* A node that ends gives its memory to one that begins then. */
static void one_after_the_other_is_sound(void **state) {
  (void)state;
  for (size_t i = 0; i < WEIR_TABLE_COUNT(kSizes); i++) {
    weir_error err = WEIR_ERROR_INIT;
    scene s;
    int64_t peaks[2], most[2] = {0, 0};
    open_scene(&s, kSizes[i].count, kSizes[i].from);
    for (uint32_t n = 0; n < kSizes[i].count; n++)
      if (bytes_of(n) > most[s.plan->device[n]])
        most[s.plan->device[n]] = bytes_of(n);
    assert_ok(weir_place_check(weir_allocator_system(), s.problem, s.plan,
                               peaks, &err),
              &err);
    for (int d = 0; d < 2; d++)
      assert_int_equal(peaks[d], weir_place_held(s.problem, most[d]));
    close_scene(&s);
  }
}

/* Each node in turn (of many, some) a moment too soon: all but the first of a
 * device meet the one before. */
static void an_overlap_is_found(void **state) {
  (void)state;
  for (size_t i = 0; i < WEIR_TABLE_COUNT(kSizes); i++) {
    uint32_t count = kSizes[i].count, some = count / 50 + 1;
    scene s;
    open_scene(&s, count, kSizes[i].from + 1);
    for (uint32_t n = 0; n < count; n += some) {
      weir_error err = WEIR_ERROR_INIT;
      bool first = s.plan->start_ns[n] == kSizes[i].from + 1;
      int64_t makespan = 0;
      s.plan->start_ns[n]--;
      s.plan->end_ns[n]--;
      for (uint32_t k = 0; k < count; k++)
        if (s.plan->end_ns[k] > makespan) makespan = s.plan->end_ns[k];
      s.plan->makespan_ns = makespan;
      weir_status got = weir_place_check(weir_allocator_system(), s.problem,
                                         s.plan, NULL, &err);
      if (first)
        assert_ok(got, &err);
      else
        assert_error(got, &err, "W3016");
      if (!first)
        assert_non_null(strstr(err.message, "two nodes or sends at once"));
      s.plan->start_ns[n]++;
      s.plan->end_ns[n]++;
    }
    close_scene(&s);
  }
}

static void nothing_is_left_when_memory_runs_out(void **state) {
  (void)state;
  scene s;
  open_scene(&s, 60, 0);
  for (uint64_t k = 1;; k++) {
    weir_counted_allocator memory;
    weir_error err = WEIR_ERROR_INIT;
    weir_counted_allocator_init(&memory, NULL);
    memory.fail_at = k;
    weir_status got =
        weir_place_check(&memory.base, s.problem, s.plan, NULL, &err);
    assert_int_equal(atomic_load(&memory.live_blocks), 0);
    if (got == WEIR_OK) break;
    assert_error(got, &err, "W6001");
    assert_true(k < 100);
  }
  close_scene(&s);
}

/* a, then b, where a was, which is what the variable is to be. |bytes|: of b.
 */
static weir_status make_kept(uint32_t keeper, int64_t bytes,
                             weir_place_problem **out, weir_error *err) {
  weir_place_builder *b = NULL;
  const int64_t cost[1] = {COST};
  weir_place_node_spec spec = {.cost = cost, .group = WEIR_PLACE_NONE};
  assert_ok(weir_place_builder_create(weir_allocator_system(), 1, &b, err),
            err);
  for (uint32_t d = 0; d < 2; d++)
    weir_place_add_device(b,
                          &(weir_place_device){WEIR_SV_LIT("d"), 0, INT64_MAX});
  weir_place_connect_all(b, &(weir_place_link){.latency_ns = 1});
  uint32_t in = weir_place_add_tensor(b, weir_place_add_node(b, &spec), 100);
  uint32_t n = weir_place_add_node(b, &spec);
  uint32_t made = weir_place_add_tensor(b, n, bytes);
  weir_place_keep_tensor(b, made, keeper);
  weir_place_add_use(b, n, in);
  weir_place_add_over(b, in, made);
  spec.resident_bytes = 200;
  weir_place_add_node(b, &spec);
  weir_status s = weir_place_builder_finish(b, out, err);
  weir_place_builder_release(b);
  return s;
}

/* Where the variable is, its new value takes nothing and lies over nothing;
 * elsewhere it is a tensor that lies where its input was. */
static void a_kept_tensor_counts_where_its_keeper_is_not(void **state) {
  static const int64_t kPeaks[2][2] = {{200, 100}, {0, 300}};
  weir_error err = WEIR_ERROR_INIT;
  scene s;
  (void)state;
  assert_ok(make_kept(2, 100, &s.problem, &err), &err);
  assert_ok(
      weir_place_plan_create(weir_allocator_system(), s.problem, &s.plan, &err),
      &err);
  for (uint32_t at = 0; at < 2; at++) {
    int64_t peaks[2];
    for (uint32_t n = 0; n < 3; n++) {
      s.plan->device[n] = n < 2 ? 1 : at;
      s.plan->start_ns[n] = COST * n;
      s.plan->end_ns[n] = COST * (n + 1);
    }
    s.plan->makespan_ns = COST * 3;
    assert_ok(weir_place_check(weir_allocator_system(), s.problem, s.plan,
                               peaks, &err),
              &err);
    for (int d = 0; d < 2; d++) assert_int_equal(peaks[d], kPeaks[at][d]);
  }
  close_scene(&s);
  assert_error(make_kept(3, 100, &s.problem, &err), &err, "W3010");
  weir_error other = WEIR_ERROR_INIT;
  assert_error(make_kept(2, 101, &s.problem, &other), &other, "W3010");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_after_the_other_is_sound),
      cmocka_unit_test(an_overlap_is_found),
      cmocka_unit_test(a_kept_tensor_counts_where_its_keeper_is_not),
      cmocka_unit_test(nothing_is_left_when_memory_runs_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
