/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/base/env_system.h"
#include "tests/check.h"

/* The system's random bits: all bytes asked for are written, and no more. */

static void random_bits_fill_what_was_asked(void **state) {
  (void)state;
  const weir_random *random = weir_env_system()->random;
  static unsigned char a[5000], b[5000];
  assert_true(random->fill(random->self, a, 0));
  assert_int_equal(a[0], 0);
  assert_true(random->fill(random->self, a, sizeof a - 8));
  assert_true(random->fill(random->self, b, sizeof b - 8));
  assert_memory_not_equal(a, b, 32); /* by chance once in 2^256 */
  /* A part that was left out would be zero: eight bytes once in 2^64. */
  for (size_t at = 0; at + 16 < sizeof a; at += 8)
    assert_memory_not_equal(a + at, "\0\0\0\0\0\0\0", 8);
  assert_memory_equal(a + sizeof a - 8, "\0\0\0\0\0\0\0", 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_bits_fill_what_was_asked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
