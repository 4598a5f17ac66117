/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_KERNELS_NEON_CMOCKA_H_
#define TESTS_KERNELS_NEON_CMOCKA_H_

/* What tests of kernels use of cmocka, which the cross compiler has none of. A
 * failure ends the program. */

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
  const char *name;
  void (*run)(void **state);
};

#define cmocka_unit_test(function) \
  { #function, function }

__attribute__((noreturn, format(printf, 3, 4))) static inline void cmocka_stop(
    const char *file, int line, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(stderr, "%s:%d: ", file, line);
  vfprintf(stderr, format, args);
  fprintf(stderr, "\n");
  va_end(args);
  exit(1);
}

#define print_message(...) printf(__VA_ARGS__)
#define skip() return
#define fail_msg(...) cmocka_stop(__FILE__, __LINE__, __VA_ARGS__)
#define CMOCKA_CHECK(held, text)               \
  do {                                         \
    if (!(held)) fail_msg("not so: %s", text); \
  } while (0)
#define assert_true(x) CMOCKA_CHECK(x, #x)
#define assert_false(x) CMOCKA_CHECK(!(x), "not " #x)
#define assert_null(x) CMOCKA_CHECK((x) == NULL, #x " is NULL")
#define assert_non_null(x) CMOCKA_CHECK((x) != NULL, #x)
#define assert_int_equal(a, b) \
  CMOCKA_CHECK((int64_t)(a) == (int64_t)(b), #a " is " #b)
#define assert_int_not_equal(a, b) \
  CMOCKA_CHECK((int64_t)(a) != (int64_t)(b), #a " is not " #b)
#define assert_ptr_equal(a, b) \
  CMOCKA_CHECK((const void *)(a) == (const void *)(b), #a " is " #b)
#define assert_in_range(x, low, high) \
  CMOCKA_CHECK((x) >= (low) && (x) <= (high), #x " in a range")
#define assert_string_equal(a, b) CMOCKA_CHECK(strcmp(a, b) == 0, #a " is " #b)
#define assert_string_not_equal(a, b) \
  CMOCKA_CHECK(strcmp(a, b) != 0, #a " is not " #b)
#define assert_memory_equal(a, b, n) \
  CMOCKA_CHECK(memcmp(a, b, n) == 0, #a " is " #b)
#define assert_memory_not_equal(a, b, n) \
  CMOCKA_CHECK(memcmp(a, b, n) != 0, #a " is not " #b)

static inline int cmocka_run_all(const struct CMUnitTest *tests, size_t count) {
  void *state = NULL;
  for (size_t i = 0; i < count; i++) {
    fprintf(stderr, "%s\n", tests[i].name);
    tests[i].run(&state);
  }
  return 0;
}

#define cmocka_run_group_tests(tests, setup, teardown) \
  cmocka_run_all(tests, sizeof(tests) / sizeof *(tests))
#define cmocka_run_group_tests_name(name, tests, setup, teardown) \
  cmocka_run_all(tests, sizeof(tests) / sizeof *(tests))

#endif
