/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tools/tools.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

/* Tensors as text and as JSON, and how far one is from another. */

static weir_runtime *runtime;

static int setup(void **state) {
  (void)state;
  return weir_runtime_create(NULL, &runtime, NULL) != WEIR_OK;
}

static int teardown(void **state) {
  (void)state;
  weir_runtime_release(runtime);
  return 0;
}

typedef struct text {
  char data[4096];
  size_t size;
} text;

static bool append(void *self, const char *data, size_t size) {
  text *t = self;
  if (t->size + size > sizeof t->data) return false;
  memcpy(t->data + t->size, data, size);
  t->size += size;
  return true;
}

static bool refuse(void *self, const char *data, size_t size) {
  (void)self;
  (void)data;
  (void)size;
  return false;
}

static void print(weir_dtype dtype, int rank, const int64_t *dims,
                  const void *data, size_t bytes, const char *want) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  text out = {.size = 0};
  assert_ok(weir_tensor_from_data(
                runtime,
                &(weir_tensor_spec)WEIR_TENSOR_SPEC(dtype, rank, dims, bytes),
                data, &t, &err),
            &err);
  assert_true(weir_tools_tensor_print("t", t, false, append, &out));
  out.data[out.size] = '\0';
  assert_string_equal(out.data, want);
  assert_false(weir_tools_tensor_print("t", t, false, refuse, NULL));
  weir_tensor_release(t);
}

static void test_print(void **state) {
  (void)state;
  const float f[] = {2, 1, 4.5f, -3, 0.1f, 1e20f, 0, 1};
  const uint8_t b[] = {1, 0};
  const int64_t two[] = {2, 2}, three[] = {2, 2, 2}, bools[] = {2},
                none[] = {0, 3};
  print(WEIR_F32, 2, two, f, 16,
        "t  f32[2, 2]\n  [[  2,   1],\n   [4.5,  -3]]\n");
  print(WEIR_F32, 0, NULL, f, 4, "t  f32[]\n  2\n");
  print(WEIR_BOOL, 1, bools, b, 2, "t  bool[2]\n  [ true, false]\n");
  print(WEIR_F32, 2, none, f, 0, "t  f32[0, 3]\n");
  print(WEIR_F32, 3, three, f, 32,
        "t  f32[2, 2, 2]\n  [[[    2,     1],\n    [  4.5,    -3]],\n\n"
        "   [[  0.1, 1e+20],\n    [    0,     1]]]\n");
}

static void test_json(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  text out = {.size = 0};
  const int64_t dims[] = {2, 1};
  const double data[] = {0.1, -2};
  const char *name = "a \"b\"";
  assert_ok(weir_tensor_from_data(runtime,
                                  &(weir_tensor_spec)WEIR_TENSOR_SPEC(
                                      WEIR_F64, 2, dims, sizeof data),
                                  data, &t, &err),
            &err);
  const weir_tensor *list = t;
  assert_true(weir_tools_outputs_json(1, &name, &list, append, &out));
  out.data[out.size] = '\0';
  assert_non_null(strstr(out.data, "\"a \\\"b\\\"\": {"));
  assert_non_null(strstr(out.data, "\"data\": [[0.1], [-2]]"));
  weir_tensor_release(t);
}

static weir_tools_compare compare(const double *a, const double *b, double rtol,
                                  double atol) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *x = NULL, *y = NULL;
  const int64_t dims[] = {3};
  assert_ok(
      weir_tensor_from_data(
          runtime, &(weir_tensor_spec)WEIR_TENSOR_SPEC(WEIR_F64, 1, dims, 24),
          a, &x, &err),
      &err);
  assert_ok(
      weir_tensor_from_data(
          runtime, &(weir_tensor_spec)WEIR_TENSOR_SPEC(WEIR_F64, 1, dims, 24),
          b, &y, &err),
      &err);
  weir_tools_compare c;
  weir_tools_tensor_compare(x, y, rtol, atol, &c);
  weir_tensor_release(x);
  weir_tensor_release(y);
  return c;
}

static void test_compare(void **state) {
  (void)state;
  double nan = strtod("nan", NULL), inf = strtod("inf", NULL);
  double a[] = {1, nan, inf}, b[] = {1, nan, inf};
  weir_tools_compare c = compare(a, b, 0, 0);
  assert_int_equal(c.differing, 0);
  assert_int_equal(c.first, -1);
  b[0] = 1.1;
  c = compare(a, b, 0.05, 0);
  assert_int_equal(c.differing, 1);
  assert_int_equal(c.first, 0);
  assert_true(c.max_abs > 0.09 && c.max_abs < 0.11);
  assert_int_equal(compare(a, b, 0.1, 0).differing, 0);
  b[2] = 1e300;
  assert_int_equal(compare(a, b, 1, 1).first, 2);
  a[1] = 0;
  assert_int_equal(compare(a, b, 1, 1).first, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_print),
                                     cmocka_unit_test(test_json),
                                     cmocka_unit_test(test_compare)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
