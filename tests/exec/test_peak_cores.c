/* SPDX-License-Identifier: Apache-2.0 */
/* Peaks of several threads at once: they lie where arithmetic allows. */
#include "runtime/exec/measure/peak_cores.h"

#include "kernels/profile.h"
#include "runtime/base/env_system.h"
#include "runtime/exec/measure/peak.h"
#include "tests/check.h"

static weir_env env_with(const weir_allocator *alloc) {
  weir_env env = *weir_env_system();
  env.alloc = alloc;
  return env;
}

static void adds_up(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_counted_allocator counted;
  weir_counted_allocator_init(&counted, NULL);
  weir_env env = env_with(&counted.base);
  for (int threads = 1; threads <= 3; threads += 2) {
    weir_peak_cores p;
    weir_peak one;
    assert_ok(weir_peak_measure_cores(&env, 0, threads, &p, &err), &err);
    assert_ok(weir_peak_measure(&env, 0, &one, &err), &err);
    assert_int_equal(p.threads, threads);
    assert_true(p.f32_gflops > 0 && p.f64_gflops > 0);
    /* Threads add nothing to what a core can do; a core's clock may rise. */
    assert_true(p.f32_gflops < 3 * threads * one.f32_gflops);
  }
  assert_int_equal(counted.live_bytes, 0);
}

static void lower_sets_are_no_quicker(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  double before = 0;
  for (int i = 0; weir_profile_at(i) != 0; i++) {
    weir_peak_cores p;
    assert_ok(weir_peak_measure_cores(weir_env_system(), weir_profile_at(i), 1,
                                      &p, &err),
              &err);
    if (i > 0) assert_true(p.f32_gflops < 1.5 * before);
    before = p.f32_gflops;
  }
}

static void no_memory(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_counted_allocator counted;
  weir_counted_allocator_init(&counted, NULL);
  weir_env env = env_with(&counted.base);
  weir_peak_cores p;
  counted.fail_at = 1;
  assert_error(weir_peak_measure_cores(&env, 0, 2, &p, &err), &err, "W6001");
  assert_int_equal(counted.live_bytes, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(adds_up),
      cmocka_unit_test(lower_sets_are_no_quicker),
      cmocka_unit_test(no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
