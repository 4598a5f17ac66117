/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/alloc.h"

#include <string.h>

#include "runtime/base/vec.h"
#include "tests/check.h"

static void counts_live_bytes(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_counted_allocator_init(&c, NULL);
  void *a = weir_alloc(&c.base, 100);
  void *b = weir_alloc_aligned(&c.base, 1000, 64);
  assert_int_equal((uintptr_t)b % 64, 0);
  assert_int_equal(atomic_load(&c.live_bytes), 1100);
  weir_free(&c.base, a);
  weir_free(&c.base, b);
  weir_free(&c.base, NULL);
  assert_int_equal(atomic_load(&c.live_bytes), 0);
  assert_int_equal(atomic_load(&c.live_blocks), 0);
  assert_int_equal(atomic_load(&c.peak_bytes), 1100);
}

static void fails_on_request(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_counted_allocator_init(&c, NULL);
  c.fail_at = 2;
  void *a = weir_alloc(&c.base, 8);
  assert_non_null(a);
  assert_null(weir_alloc(&c.base, 8));
  void *b = weir_alloc(&c.base, 8);
  assert_non_null(b);
  c.fail_forever = true;
  assert_null(weir_alloc(&c.base, 8));
  weir_free(&c.base, a);
  weir_free(&c.base, b);
}

static void refuses_overflow(void **state) {
  (void)state;
  const weir_allocator *a = weir_allocator_system();
  assert_null(weir_alloc_array(a, SIZE_MAX / 2, 3));
  assert_null(weir_alloc_aligned(a, SIZE_MAX - 4, 64));
  weir_arena arena;
  weir_arena_init(&arena, a);
  assert_null(weir_arena_alloc(&arena, SIZE_MAX - 3));
  assert_null(weir_arena_array(&arena, SIZE_MAX, 2));
  weir_arena_release(&arena);
}

static void arena_keeps_blocks_apart(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_counted_allocator_init(&c, NULL);
  weir_arena arena;
  weir_arena_init(&arena, &c.base);
  char *kept[200];
  for (int i = 0; i < 200; i++) {
    size_t size = i % 50 == 49 ? 100000 : (size_t)i * 7 + 1;
    kept[i] = weir_arena_alloc(&arena, size);
    assert_non_null(kept[i]);
    assert_int_equal((uintptr_t)kept[i] % 16, 0);
    memset(kept[i], i, size);
  }
  for (int i = 0; i < 200; i++) {
    size_t size = i % 50 == 49 ? 100000 : (size_t)i * 7 + 1;
    assert_int_equal((unsigned char)kept[i][0], i);
    assert_int_equal((unsigned char)kept[i][size - 1], i);
  }
  weir_arena_release(&arena);
  assert_int_equal(atomic_load(&c.live_bytes), 0);
}

static void an_arena_takes_over(void **state) {
  (void)state;
  for (int empty = 0; empty < 4; empty++) {
    weir_counted_allocator c;
    weir_counted_allocator_init(&c, NULL);
    weir_arena a, b;
    weir_arena_init(&a, &c.base);
    weir_arena_init(&b, &c.base);
    char *x = empty & 1 ? NULL : weir_arena_string(&a, "x", 1);
    char *y = empty & 2 ? NULL : weir_arena_string(&b, "y", 1);
    if (!(empty & 2)) assert_non_null(weir_arena_alloc(&b, 1 << 20));
    weir_arena_adopt(&a, &b);
    weir_arena_release(&b);
    assert_non_null(weir_arena_string(&a, "more", 4));
    if (x != NULL) assert_string_equal(x, "x");
    if (y != NULL) assert_string_equal(y, "y");
    weir_arena_release(&a);
    assert_int_equal(atomic_load(&c.live_bytes), 0);
  }
}

static void vec_grows(void **state) {
  (void)state;
  const weir_allocator *a = weir_allocator_system();
  WEIR_VEC(int) v = {0};
  for (int i = 0; i < 1000; i++) assert_true(weir_vec_push(a, &v, i));
  for (int i = 0; i < 1000; i++) assert_int_equal(v.items[i], i);
  weir_vec_free(a, &v);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(counts_live_bytes),
      cmocka_unit_test(fails_on_request),
      cmocka_unit_test(refuses_overflow),
      cmocka_unit_test(arena_keeps_blocks_apart),
      cmocka_unit_test(an_arena_takes_over),
      cmocka_unit_test(vec_grows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
