/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/memory/memory_plan.h"
#include "placement/memory/memory_reuse.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

static uint32_t next(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static weir_lifetime *random_lifetimes(uint32_t count, uint32_t seed,
                                       uint32_t span) {
  weir_lifetime *l = calloc(count, sizeof *l);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t length = next(&seed) % span;
    size_t bytes = next(&seed) % 5 == 0 ? 0 : next(&seed) % 5000;
    l[i] = (weir_lifetime){bytes, i, i + length, WEIR_MEMORY_NO_BUFFER};
    if (i > 0 && next(&seed) % 3 == 0) l[i].in_place_of = i - 1;
  }
  return l;
}

/* Buffers that share a moment and memory, in place aside: found pair by pair,
 * not by the planner's own methods. */
static void check_plan(const weir_lifetime *l, uint32_t count,
                       const weir_memory_plan *plan) {
  for (uint32_t i = 0; i < count; i++) {
    assert_int_equal(plan->offsets[i] % 64, 0);
    assert_true(plan->offsets[i] + l[i].bytes <= plan->peak_bytes);
    for (uint32_t k = 0; k < i; k++) {
      bool memory = l[i].bytes > 0 && l[k].bytes > 0 &&
                    plan->offsets[i] < plan->offsets[k] + l[k].bytes &&
                    plan->offsets[k] < plan->offsets[i] + l[i].bytes;
      bool moment = l[i].first <= l[k].last && l[k].first <= l[i].last;
      if (!memory || !moment) continue;
      assert_int_equal(l[i].in_place_of, k);
      assert_int_equal(l[k].last, l[i].first);
      assert_int_equal(plan->offsets[i], plan->offsets[k]);
    }
  }
}

static void random_plans_are_sound(void **state) {
  (void)state;
  const weir_allocator *a = weir_allocator_system();
  for (uint32_t seed = 1; seed <= 60; seed++) {
    uint32_t count = seed % 4 == 0 ? 1500 : seed * 7;
    weir_lifetime *l = random_lifetimes(count, seed, seed % 3 ? 6 : 90);
    weir_error err = WEIR_ERROR_INIT;
    weir_memory_plan plan;
    weir_arena arena;
    weir_arena_init(&arena, a);
    assert_ok(weir_memory_plan_make((weir_lifetimes){l, count}, 64, &arena, a,
                                    &plan, &err),
              &err);
    check_plan(l, count, &plan);
    assert_true(plan.peak_bytes >= plan.bound_bytes);
    assert_true(plan.peak_bytes <= plan.bound_bytes * 2);
    weir_arena_release(&arena);
    free(l);
  }
}

static weir_memory_plan plan_of(const weir_lifetime *l, uint32_t count,
                                weir_arena *arena) {
  weir_error err = WEIR_ERROR_INIT;
  weir_memory_plan plan;
  weir_arena_init(arena, weir_allocator_system());
  assert_ok(weir_memory_plan_make((weir_lifetimes){l, count}, 64, arena,
                                  weir_allocator_system(), &plan, &err),
            &err);
  return plan;
}

static void chain_needs_two(void **state) {
  (void)state;
  weir_lifetime l[100];
  for (uint32_t i = 0; i < 100; i++)
    l[i] = (weir_lifetime){64, i, i + 1, WEIR_MEMORY_NO_BUFFER};
  weir_arena arena;
  weir_memory_plan plan = plan_of(l, 100, &arena);
  assert_int_equal(plan.peak_bytes, 128);
  assert_int_equal(plan.bound_bytes, 128);
  weir_arena_release(&arena);
}

static void chain_in_place_needs_one(void **state) {
  (void)state;
  weir_lifetime l[100];
  for (uint32_t i = 0; i < 100; i++)
    l[i] = (weir_lifetime){64, i, i + 1, i > 0 ? i - 1 : UINT32_MAX};
  weir_arena arena;
  weir_memory_plan plan = plan_of(l, 100, &arena);
  assert_int_equal(plan.peak_bytes, 64);
  weir_arena_release(&arena);
}

static void in_place_waits_for_readers(void **state) {
  (void)state;
  weir_lifetime l[] = {{64, 0, 2, UINT32_MAX}, {64, 1, 3, 0}};
  weir_arena arena;
  weir_memory_plan plan = plan_of(l, 2, &arena);
  assert_int_not_equal(plan.offsets[0], plan.offsets[1]);
  weir_arena_release(&arena);
}

static void nothing_to_plan(void **state) {
  (void)state;
  weir_arena arena;
  weir_memory_plan plan = plan_of(NULL, 0, &arena);
  assert_int_equal(plan.bound_bytes, 0);
  assert_int_equal(plan.peak_bytes, 0);
  weir_arena_release(&arena);
}

static void sum_overflow(void **state) {
  (void)state;
  weir_lifetime l[] = {{SIZE_MAX / 2, 0, 0, UINT32_MAX},
                       {SIZE_MAX / 2, 1, 1, UINT32_MAX},
                       {SIZE_MAX / 2, 2, 2, UINT32_MAX}};
  const weir_allocator *a = weir_allocator_system();
  weir_error err = WEIR_ERROR_INIT;
  weir_memory_plan plan;
  weir_arena arena;
  weir_arena_init(&arena, a);
  assert_error(
      weir_memory_plan_make((weir_lifetimes){l, 3}, 64, &arena, a, &plan, &err),
      &err, "W2001");
  weir_arena_release(&arena);
}

/* after[later][earlier]: ordered by the pairs reported, closed transitively. */
enum { kMatrix = 150 };
typedef struct order {
  bool after[kMatrix][kMatrix];
} order;

static void note(void *self, uint32_t earlier, uint32_t later) {
  order *o = self;
  o->after[later][earlier] = true;
}

static void reuses_order_all_sharing(void **state) {
  (void)state;
  const weir_allocator *a = weir_allocator_system();
  for (uint32_t seed = 1; seed <= 10; seed++) {
    weir_lifetime *l = random_lifetimes(kMatrix, seed, 9);
    for (uint32_t i = 0; i < kMatrix; i++) l[i].in_place_of = UINT32_MAX;
    weir_arena arena;
    weir_memory_plan plan = plan_of(l, kMatrix, &arena);
    order *o = calloc(1, sizeof *o);
    weir_error err = WEIR_ERROR_INIT;
    assert_ok(weir_memory_plan_reuses((weir_lifetimes){l, kMatrix}, &plan, a,
                                      note, o, &err),
              &err);
    for (uint32_t k = 0; k < kMatrix; k++)
      for (uint32_t i = 0; i < kMatrix; i++)
        for (uint32_t j = 0; o->after[i][k] && j < kMatrix; j++)
          if (o->after[k][j]) o->after[i][j] = true;
    for (uint32_t i = 0; i < kMatrix; i++)
      for (uint32_t k = 0; k < kMatrix; k++) {
        bool shares = l[i].bytes > 0 && l[k].bytes > 0 &&
                      plan.offsets[i] < plan.offsets[k] + l[k].bytes &&
                      plan.offsets[k] < plan.offsets[i] + l[i].bytes;
        if (o->after[i][k]) assert_true(l[k].last < l[i].first);
        if (shares && l[k].last < l[i].first) assert_true(o->after[i][k]);
      }
    free(o);
    weir_arena_release(&arena);
    free(l);
  }
}

static void many_buffers(void **state) {
  (void)state;
  enum { kMany = 100000 };
  weir_lifetime *l = random_lifetimes(kMany, 7, 2000);
  weir_arena arena;
  weir_memory_plan plan = plan_of(l, kMany, &arena);
  assert_true(plan.peak_bytes < plan.bound_bytes + plan.bound_bytes / 2);
  weir_arena_release(&arena);
  free(l);
}

static void ignore(void *self, uint32_t earlier, uint32_t later) {
  (void)self, (void)earlier, (void)later;
}

static void no_memory(void **state) {
  (void)state;
  weir_lifetime *l = random_lifetimes(1200, 3, 50);
  for (int forever = 0; forever < 2; forever++) {
    weir_status s = WEIR_UNKNOWN;
    for (uint64_t k = 1; s != WEIR_OK; k++) {
      weir_counted_allocator c;
      weir_error err = WEIR_ERROR_INIT;
      weir_memory_plan plan;
      weir_arena arena;
      weir_counted_allocator_init(&c, NULL);
      c.fail_at = k;
      c.fail_forever = forever;
      weir_arena_init(&arena, &c.base);
      s = weir_memory_plan_make((weir_lifetimes){l, 1200}, 64, &arena, &c.base,
                                &plan, &err);
      if (s == WEIR_OK)
        s = weir_memory_plan_reuses((weir_lifetimes){l, 1200}, &plan, &c.base,
                                    ignore, NULL, &err);
      if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
      weir_arena_release(&arena);
      assert_int_equal(atomic_load(&c.live_blocks), 0);
    }
  }
  free(l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_plans_are_sound),
      cmocka_unit_test(chain_needs_two),
      cmocka_unit_test(chain_in_place_needs_one),
      cmocka_unit_test(in_place_waits_for_readers),
      cmocka_unit_test(nothing_to_plan),
      cmocka_unit_test(sum_overflow),
      cmocka_unit_test(reuses_order_all_sharing),
      cmocka_unit_test(many_buffers),
      cmocka_unit_test(no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
