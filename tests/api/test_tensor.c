/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "runtime/weir.h"
#include "runtime/weir_tools.h"
#include "tests/check.h"

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

static void test_create(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  weir_tensor_info info = {.struct_size = sizeof info};
  const int64_t dims[] = {2, 0, 3};
  assert_ok(weir_tensor_create(runtime, WEIR_I64, 3, dims, &t, &err), &err);
  assert_ok(weir_tensor_desc(t, &info), &err);
  assert_int_equal(info.rank, 3);
  assert_int_equal(info.elements, 0);
  assert_int_equal(info.bytes, 0);
  assert_non_null(weir_tensor_data(t));
  assert_ptr_equal(weir_tensor_retain(t), t);
  weir_tensor_release(t);
  weir_tensor_release(t);
}

static void test_refuses(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  const int64_t minus[] = {-1}, huge[] = {INT64_MAX, 2};
  const int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  assert_error(weir_tensor_create(runtime, WEIR_F32, 1, minus, &t, &err), &err,
               "W2002");
  assert_error(weir_tensor_create(runtime, WEIR_F32, 2, huge, &t, &err), &err,
               "W2001");
  assert_error(weir_tensor_create(runtime, WEIR_F32, 9, nine, &t, &err), &err,
               "W2003");
  assert_error(weir_tensor_create(runtime, WEIR_F32, -1, nine, &t, &err), &err,
               "W0004");
  assert_error(weir_tensor_create(runtime, (weir_dtype)3, 1, nine, &t, &err),
               &err, "W0004");
  float x[2] = {1, 2};
  assert_error(
      weir_tensor_from_data(runtime, WEIR_F32, 1, nine, x, 8, &t, &err), &err,
      "W0004");
  assert_error(weir_tensor_from_memory(runtime, WEIR_F32, 1, nine,
                                       (char *)x + 1, 4, NULL, NULL, &t, &err),
               &err, "W0004");
  assert_null(t);
}

static void count_release(void *self, void *data) {
  (void)data;
  ++*(int *)self;
}

static void test_from_memory(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  int released = 0;
  double data[6] = {1, 2, 3, 4, 5, 6};
  const int64_t dims[] = {2, 3};
  assert_ok(
      weir_tensor_from_memory(runtime, WEIR_F64, 2, dims, data, sizeof data,
                              count_release, &released, &t, &err),
      &err);
  assert_ptr_equal(weir_tensor_data(t), data);
  assert_ptr_equal(weir_tensor_mutable_data(t), data);
  weir_tensor_release(t);
  assert_int_equal(released, 1);
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

static void test_stream_round_trip(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  const int64_t dims[] = {3};
  const int32_t data[] = {1, -2, 3};
  const char *name = "x";
  weir_tensor *t = NULL, *back = NULL;
  assert_ok(weir_tensor_from_data(runtime, WEIR_I32, 1, dims, data, sizeof data,
                                  &t, &err),
            &err);
  const weir_tensor *list = t;
  for (int format = WEIR_FILE_NPY; format <= WEIR_FILE_SAFETENSORS; format++) {
    text out = {.size = 0};
    assert_ok(weir_tensor_write_stream(runtime, (weir_file_format)format, 1,
                                       &name, &list, append, &out, &err),
              &err);
    assert_ok(weir_tensor_read_buffer(runtime, out.data, out.size, "buffer",
                                      NULL, &back, &err),
              &err);
    assert_memory_equal(weir_tensor_data(back), data, sizeof data);
    weir_tensor_release(back);
    assert_error(weir_tensor_write_stream(runtime, (weir_file_format)format, 1,
                                          &name, &list, refuse, NULL, &err),
                 &err, "W5009");
  }
  assert_error(weir_tensor_write_stream(runtime, (weir_file_format)9, 1, &name,
                                        &list, refuse, NULL, &err),
               &err, "W0004");
  assert_error(
      weir_tensor_read_buffer(runtime, "abc", 3, "abc", NULL, &back, &err),
      &err, "W4008");
  weir_tensor_release(t);
}

static void print(weir_dtype dtype, int rank, const int64_t *dims,
                  const void *data, size_t bytes, const char *want) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  text out = {.size = 0};
  assert_ok(
      weir_tensor_from_data(runtime, dtype, rank, dims, data, bytes, &t, &err),
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
  assert_ok(weir_tensor_from_data(runtime, WEIR_F64, 2, dims, data, sizeof data,
                                  &t, &err),
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
  assert_ok(weir_tensor_from_data(runtime, WEIR_F64, 1, dims, a, 24, &x, &err),
            &err);
  assert_ok(weir_tensor_from_data(runtime, WEIR_F64, 1, dims, b, 24, &y, &err),
            &err);
  weir_tools_compare c = {.struct_size = sizeof c};
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
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_create),
                                     cmocka_unit_test(test_refuses),
                                     cmocka_unit_test(test_from_memory),
                                     cmocka_unit_test(test_stream_round_trip),
                                     cmocka_unit_test(test_print),
                                     cmocka_unit_test(test_json),
                                     cmocka_unit_test(test_compare)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
