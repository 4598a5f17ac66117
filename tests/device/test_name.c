/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/name.h"

#include "tests/check.h"

static weir_device_name parse(const char *text) {
  weir_error err = WEIR_ERROR_INIT;
  weir_device_name name;
  assert_ok(weir_device_name_parse(weir_sv_from(text), &name, NULL, &err),
            &err);
  return name;
}

static void prints(const char *text, const char *canonical) {
  char out[128];
  weir_device_name name = parse(text);
  assert_string_equal(weir_device_name_print(&name, out, sizeof out),
                      canonical);
}

static void spellings(void **state) {
  (void)state;
  prints("/job:worker/task:0/device:GPU:0", "/job:worker/task:0/device:GPU:0");
  prints("/job:worker/replica:0/task:3/gpu:1",
         "/job:worker/task:3/device:GPU:1");
  prints("gpu:0", "/device:GPU:0");
  prints("/GPU:0", "/device:GPU:0");
  prints("/device:cpu:0", "/device:CPU:0");
  prints("/cpu", "/device:CPU");
  prints("/job:ps", "/job:ps");
  prints("/job:worker/task:*/gpu:*", "/job:worker/device:GPU");
  prints("/job:worker/task:[0-3]/gpu:0", "/job:worker/task:[0-3]/device:GPU:0");
  prints("/device:*", "");
}

static void refusals(void **state) {
  (void)state;
  static const struct {
    const char *text;
    size_t at;
  } kBad[] = {{"", 0},
              {"/", 1},
              {"/job", 4},
              {"/job:", 5},
              {"/task:x", 6},
              {"/tpu:0", 4},
              {"gpu:", 4},
              {"gpu:1x", 5},
              {"gpu:-1", 4},
              {"gpu:0/gpu:1", 9},
              {"/task:[3-1]", 11},
              {"gpu:99999999999", 14},
              {"/job:a/", 7}};
  for (size_t i = 0; i < sizeof kBad / sizeof kBad[0]; i++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_device_name name;
    size_t at = 0;
    assert_error(
        weir_device_name_parse(weir_sv_from(kBad[i].text), &name, &at, &err),
        &err, "W1115");
    assert_int_equal(at, kBad[i].at);
  }
}

static void merges(const char *name, const char *defaults, const char *want) {
  char out[128];
  weir_device_name a = parse(name), b = parse(defaults);
  weir_device_name merged = weir_device_name_merge(&a, &b);
  assert_string_equal(weir_device_name_print(&merged, out, sizeof out), want);
}

static void merging(void **state) {
  (void)state;
  merges("/job:ps", "gpu:0", "/job:ps/device:GPU:0");
  merges("/job:ps", "/job:worker/task:2/gpu:0", "/job:ps/device:GPU:0");
  merges("/cpu", "/job:worker/task:2/gpu:1", "/job:worker/task:2/device:CPU");
  merges("/task:1", "/job:worker/task:2", "/job:worker/task:1");
}

static void matching(void **state) {
  (void)state;
  weir_device_name full = parse("/job:worker/task:2/gpu:0");
  static const char *const kYes[] = {"/job:worker", "gpu", "/task:2",
                                     "/task:[1-2]"};
  static const char *const kNo[] = {"/job:ps", "cpu", "/task:1", "gpu:1"};
  for (int i = 0; i < 4; i++) {
    weir_device_name yes = parse(kYes[i]), no = parse(kNo[i]);
    assert_true(weir_device_name_matches(&yes, &full));
    assert_false(weir_device_name_matches(&no, &full));
  }
  assert_true(weir_device_name_is_full(&full));
  weir_device_name partial = parse("/job:worker/gpu:0");
  assert_false(weir_device_name_is_full(&partial));
}

static void print_is_bounded(void **state) {
  (void)state;
  weir_device_name name = parse("/job:worker/task:2/gpu:0");
  char out[8];
  weir_device_name_print(&name, out, sizeof out);
  assert_string_equal(out, "/job:wo");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(spellings),        cmocka_unit_test(refusals),
      cmocka_unit_test(merging),          cmocka_unit_test(matching),
      cmocka_unit_test(print_is_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
