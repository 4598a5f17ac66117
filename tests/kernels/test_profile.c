/* SPDX-License-Identifier: Apache-2.0
 * Kernel profiles: the common profile of two machines, names, and the limit of
 * oneDNN, which binds a process for good: so each case is one of its own. */
#include "kernels/profile.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/cpu/onednn/onednn.h"
#include "tests/check.h"

static void best_first(void **state) {
  (void)state;
  uint64_t before = weir_profile_best(), next;
  assert_true(before != 0 && weir_profile_at(0) == before);
  int i = 1;
  for (; (next = weir_profile_at(i)) != 0; i++) {
    assert_true(weir_profile_level(next) < weir_profile_level(before));
    before = next;
  }
  assert_int_equal(weir_profile_level(before), 1);
  assert_int_equal(weir_profile_at(i + 5), 0);
}

static void common_is_the_lowest(void **state) {
  (void)state;
  uint64_t best = weir_profile_best();
  uint64_t bare = best & UINT64_C(0xffffffffffff0000);
  uint64_t avx2 = bare | 2 << 8 | 2;
  uint64_t mixed = bare | 1 << 8 | 3;
  assert_int_equal(weir_profile_common(best, best), best);
  uint64_t both = weir_profile_common(avx2, mixed);
  assert_int_equal(both, bare | 1 << 8 | 2);
  assert_int_equal(weir_profile_common(mixed, avx2), both);
  /* Another family, another oneDNN, other rules: nothing in common. */
  for (int bit = 16; bit < 64; bit += 8)
    assert_int_equal(weir_profile_common(best, best ^ UINT64_C(1) << bit), 0);
  assert_int_equal(weir_profile_common(best, 0), 0);
}

/* The message lists what there is, for a machine with any best set. */
static void expect_list(const weir_error *err) {
#if defined(__aarch64__)
  static const char *const lists[] = {"has generic", "generic and neon"};
#else
  static const char *const lists[] = {"has generic", "generic and avx2",
                                      "generic, avx2 and avx512"};
#endif
  int best = weir_profile_level(weir_profile_best());
  size_t length = strlen(err->message), want = strlen(lists[best - 1]);
  assert_true(length > want);
  assert_string_equal(err->message + length - want, lists[best - 1]);
}

static void above_the_machine(void **state) {
  (void)state;
#if defined(__aarch64__)
  static const char *const sets[] = {"generic", "neon", "avx2", "avx512"};
#else
  static const char *const sets[] = {"generic", "avx2", "avx512", "neon"};
#endif
  weir_error err = WEIR_ERROR_INIT;
  uint64_t p;
  for (int i = 0; i < 4; i++) {
    if (i < weir_profile_level(weir_profile_best())) {
      assert_ok(weir_profile_named(sets[i], &p, &err), &err);
      assert_int_equal(weir_profile_level(p), i + 1);
    } else {
      assert_error(weir_profile_named(sets[i], &p, &err), &err, "W0005");
      assert_int_equal(p, 0);
      expect_list(&err);
    }
  }
}

static void names(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  uint64_t p = 1;
  assert_error(weir_profile_named("sse", &p, &err), &err, "W0002");
  expect_list(&err);
  assert_error(weir_profile_named("none", &p, &err), &err, "W0002");
  assert_int_equal(p, 0);
  assert_ok(weir_profile_named("generic", &p, &err), &err);
  assert_int_equal(weir_profile_level(p), 1);
  char text[WEIR_PROFILE_TEXT], want[WEIR_PROFILE_TEXT], version[16];
  weir_onednn_version(version, sizeof version);
#if defined(__x86_64__)
  const char *const family = "x86-64";
#elif defined(__aarch64__)
  const char *const family = "AArch64";
#else
  const char *const family = "another processor";
#endif
  snprintf(want, sizeof want, "%s generic, oneDNN %s generic", family, version);
  assert_string_equal(weir_profile_text(p, text), want);
}

/* Runs |fn| in a process of its own; its exit status. */
static int alone(int (*fn)(void)) {
  int status = 0;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) _exit(fn());
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static int multiply(void) {
  weir_error err = WEIR_ERROR_INIT;
  float a[64] = {1}, b[64] = {1}, c[64];
  weir_sgemm g = {.m = 8, .n = 8, .k = 8, .lda = 8, .ldb = 8, .ldc = 8};
  return weir_onednn_sgemm(&g, a, b, c, &err) != WEIR_OK;
}

static int lowers(void) {
  weir_error err = WEIR_ERROR_INIT;
  uint64_t p;
  if (weir_profile_named("generic", &p, &err) != WEIR_OK) return 1;
  if (weir_profile_use(p, &err) != WEIR_OK) return 2;
  if (weir_profile_use(p, &err) != WEIR_OK) return 3; /* again */
  if (multiply() != 0) return 4;
  /* No way back. */
  if (weir_profile_level(weir_profile_best()) == 1) return 0;
  if (weir_profile_use(weir_profile_best(), &err) == WEIR_OK) return 5;
  return strcmp(err.id, "W0005") == 0 ? 0 : 6;
}

static int too_late(void) {
  weir_error err = WEIR_ERROR_INIT;
  uint64_t p;
  if (multiply() != 0) return 1;
  if (weir_profile_named("generic", &p, &err) != WEIR_OK) return 2;
  if (weir_profile_level(weir_profile_best()) == 1) return 0;
  if (weir_profile_use(p, &err) == WEIR_OK) return 3;
  return strcmp(err.id, "W0005") == 0 ? 0 : 4;
}

static int unknown(void) {
  weir_error err = WEIR_ERROR_INIT;
  if (weir_profile_use(0, &err) != WEIR_OK) return 1;
  if (weir_profile_use(weir_profile_best() ^ UINT64_C(1) << 16, &err) ==
      WEIR_OK)
    return 2;
  return strcmp(err.id, "W0005") == 0 ? 0 : 3;
}

static void limits(void **state) {
  (void)state;
  assert_int_equal(alone(lowers), 0);
  assert_int_equal(alone(too_late), 0);
  assert_int_equal(alone(unknown), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(best_first), cmocka_unit_test(common_is_the_lowest),
      cmocka_unit_test(names),      cmocka_unit_test(above_the_machine),
      cmocka_unit_test(limits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
