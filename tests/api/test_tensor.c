/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/weir.h"
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
      weir_tensor_from_data(
          runtime, &(weir_tensor_spec)WEIR_TENSOR_SPEC(WEIR_F32, 1, nine, 8), x,
          &t, &err),
      &err, "W0004");
  assert_error(
      weir_tensor_from_memory(
          runtime, &(weir_tensor_spec)WEIR_TENSOR_SPEC(WEIR_F32, 1, nine, 4),
          (char *)x + 1, NULL, NULL, &t, &err),
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
  assert_ok(weir_tensor_from_memory(runtime,
                                    &(weir_tensor_spec)WEIR_TENSOR_SPEC(
                                        WEIR_F64, 2, dims, sizeof data),
                                    data, count_release, &released, &t, &err),
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
  assert_ok(weir_tensor_from_data(runtime,
                                  &(weir_tensor_spec)WEIR_TENSOR_SPEC(
                                      WEIR_I32, 1, dims, sizeof data),
                                  data, &t, &err),
            &err);
  const weir_tensor *list = t;
  for (int format = WEIR_FILE_NPY; format <= WEIR_FILE_SAFETENSORS; format++) {
    text out = {.size = 0};
    assert_ok(weir_tensor_write_stream(
                  runtime, (weir_file_format)format,
                  &(weir_tensor_list)WEIR_TENSOR_LIST(1, &name, &list), append,
                  &out, &err),
              &err);
    assert_ok(weir_tensor_read_buffer(runtime, out.data, out.size, "buffer",
                                      NULL, &back, &err),
              &err);
    assert_memory_equal(weir_tensor_data(back), data, sizeof data);
    weir_tensor_release(back);
    assert_error(weir_tensor_write_stream(
                     runtime, (weir_file_format)format,
                     &(weir_tensor_list)WEIR_TENSOR_LIST(1, &name, &list),
                     refuse, NULL, &err),
                 &err, "W5009");
  }
  assert_error(weir_tensor_write_stream(
                   runtime, (weir_file_format)9,
                   &(weir_tensor_list)WEIR_TENSOR_LIST(1, &name, &list), refuse,
                   NULL, &err),
               &err, "W0004");
  assert_error(
      weir_tensor_read_buffer(runtime, "abc", 3, "abc", NULL, &back, &err),
      &err, "W4008");
  weir_tensor_release(t);
}

static void test_file_round_trip(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  const int64_t dims[] = {2};
  const char *names[] = {"a", "b"};
  char path[] = "/tmp/weir-tensor-XXXXXX.npz";
  int file = mkstemps(path, 4);
  assert_true(file >= 0);
  close(file);
  weir_tensor *t = NULL, *back = NULL;
  assert_ok(weir_tensor_create(runtime, WEIR_F64, 1, dims, &t, &err), &err);
  memcpy(weir_tensor_mutable_data(t), (double[]){1, 2}, 16);
  const weir_tensor *tensors[] = {t, t};
  weir_tensor_list list = WEIR_TENSOR_LIST(2, names, tensors);
  assert_ok(weir_tensor_write_file(runtime, path, &list, &err), &err);
  assert_ok(weir_tensor_read_file(runtime, NULL, path, "b", &back, &err), &err);
  assert_memory_equal(weir_tensor_data(back), weir_tensor_data(t), 16);
  weir_tensor_release(back);
  assert_error(weir_tensor_read_file(runtime, NULL, path, "c", &back, &err),
               &err, "W4010");
  assert_null(back);
  unlink(path);
  weir_tensor_release(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_create),
                                     cmocka_unit_test(test_refuses),
                                     cmocka_unit_test(test_from_memory),
                                     cmocka_unit_test(test_stream_round_trip),
                                     cmocka_unit_test(test_file_round_trip)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
