/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/map.h"

#include <stdio.h>

#include "tests/check.h"

static void keeps_the_first(void **state) {
  (void)state;
  weir_map map;
  weir_map_init(&map, weir_allocator_system());
  uint32_t old = 0;
  assert_int_equal(weir_map_get(&map, WEIR_SV_LIT("a")), WEIR_MAP_NONE);
  assert_true(weir_map_put(&map, WEIR_SV_LIT("a"), 1, &old));
  assert_int_equal(old, WEIR_MAP_NONE);
  assert_true(weir_map_put(&map, WEIR_SV_LIT("a"), 2, &old));
  assert_int_equal(old, 1);
  assert_int_equal(weir_map_get(&map, WEIR_SV_LIT("a")), 1);
  assert_int_equal(weir_map_get(&map, WEIR_SV_LIT("")), WEIR_MAP_NONE);
  assert_true(weir_map_put(&map, (weir_sv){NULL, 0}, 3, NULL));
  assert_int_equal(weir_map_get(&map, WEIR_SV_LIT("")), 3);
  weir_map_release(&map);
}

static void holds_many(void **state) {
  (void)state;
  static char names[20000][8];
  weir_map map;
  weir_map_init(&map, weir_allocator_system());
  for (uint32_t i = 0; i < 20000; i++) {
    snprintf(names[i], sizeof names[i], "n%u", i);
    assert_true(weir_map_put(&map, weir_sv_from(names[i]), i, NULL));
  }
  for (uint32_t i = 0; i < 20000; i++)
    assert_int_equal(weir_map_get(&map, weir_sv_from(names[i])), i);
  weir_map_release(&map);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keeps_the_first),
      cmocka_unit_test(holds_many),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
