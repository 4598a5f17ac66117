/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/dlpack.h"
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

static void count_delete(DLManagedTensorVersioned *self) {
  ++*(int *)self->manager_ctx;
}

static DLManagedTensorVersioned managed(void *data, int ndim, int64_t *shape,
                                        int64_t *strides, DLDataType dtype,
                                        int *deleted) {
  return (DLManagedTensorVersioned){.version = {DLPACK_MAJOR_VERSION, 3},
                                    .manager_ctx = deleted,
                                    .deleter = count_delete,
                                    .dl_tensor = {.data = data,
                                                  .device = {kDLCPU, 0},
                                                  .ndim = ndim,
                                                  .dtype = dtype,
                                                  .shape = shape,
                                                  .strides = strides}};
}

static const DLDataType f32 = {kDLFloat, 32, 1};

static void test_in_without_copy(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  float data[6] = {0, 1, 2, 3, 4, 5};
  int64_t shape[] = {2, 2}, strides[] = {2, 1};
  int deleted = 0;
  weir_tensor *t = NULL;
  weir_tensor_info info = {.struct_size = sizeof info};
  DLManagedTensorVersioned m = managed(data, 2, shape, strides, f32, &deleted);
  m.dl_tensor.byte_offset = 4;
  m.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  assert_ok(weir_tensor_from_dlpack(runtime, &m, &t, &err), &err);
  assert_ptr_equal(weir_tensor_data(t), data + 1);
  assert_null(weir_tensor_mutable_data(t));
  assert_ok(weir_tensor_desc(t, &info), &err);
  assert_true(info.read_only);
  assert_int_equal(deleted, 0);
  weir_tensor_release(t);
  assert_int_equal(deleted, 1);
}

static void test_in_strided_is_copied(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  float data[6] = {0, 1, 2, 3, 4, 5};
  int64_t shape[] = {3, 2}, strides[] = {1, 3}; /* a transpose */
  int deleted = 0;
  weir_tensor *t = NULL;
  DLManagedTensorVersioned m = managed(data, 2, shape, strides, f32, &deleted);
  assert_ok(weir_tensor_from_dlpack(runtime, &m, &t, &err), &err);
  assert_int_equal(deleted, 1);
  const float want[] = {0, 3, 1, 4, 2, 5};
  assert_memory_equal(weir_tensor_data(t), want, sizeof want);
  weir_tensor_release(t);
  int64_t back[] = {-1}, six[] = {6};
  m = managed(data + 5, 1, six, back, f32, &deleted); /* reversed */
  assert_ok(weir_tensor_from_dlpack(runtime, &m, &t, &err), &err);
  assert_true(((const float *)weir_tensor_data(t))[0] == 5);
  assert_true(((const float *)weir_tensor_data(t))[5] == 0);
  weir_tensor_release(t);
}

static void test_in_zero_size_and_bool(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  int64_t shape[] = {0, 4}, one[] = {1, 3}, odd[] = {17, 1};
  uint8_t bools[3] = {1, 0, 1};
  int deleted = 0;
  weir_tensor *t = NULL;
  weir_tensor_info info = {.struct_size = sizeof info};
  DLManagedTensorVersioned m = managed(NULL, 2, shape, NULL, f32, &deleted);
  assert_ok(weir_tensor_from_dlpack(runtime, &m, &t, &err), &err);
  assert_ok(weir_tensor_desc(t, &info), &err);
  assert_int_equal(info.elements, 0);
  assert_int_equal(deleted, 1);
  weir_tensor_release(t);
  /* A stride of a dimension of 1 says nothing. */
  m = managed(bools, 2, one, odd, (DLDataType){kDLBool, 8, 1}, &deleted);
  assert_ok(weir_tensor_from_dlpack(runtime, &m, &t, &err), &err);
  assert_ok(weir_tensor_desc(t, &info), &err);
  assert_int_equal(info.dtype, WEIR_BOOL);
  assert_ptr_equal(weir_tensor_data(t), bools);
  weir_tensor_release(t);
}

/* CUDA's memory that the host reads; tests/cuda has tensors on GPUs. */
static void test_in_from_cuda(void **state) {
  static const DLDeviceType kTypes[] = {kDLCUDAHost, kDLCUDAManaged};
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  float data[2] = {4, 5};
  int64_t shape[] = {2};
  for (int i = 0; i < 2; i++) {
    int deleted = 0;
    weir_tensor *t = NULL, *there = NULL;
    weir_tensor_info info = {.struct_size = sizeof info};
    DLManagedTensorVersioned m = managed(data, 1, shape, NULL, f32, &deleted);
    m.dl_tensor.device.device_type = kTypes[i];
    assert_ok(weir_tensor_from_dlpack(runtime, &m, &t, &err), &err);
    assert_ok(weir_tensor_desc(t, &info), &err);
    assert_int_equal(info.memory, WEIR_MEMORY_HOST);
    assert_ok(weir_tensor_to_host(runtime, t, &there, &err), &err);
    assert_ptr_equal(there, t); /* it is there */
    assert_ptr_equal(weir_tensor_data(there), data);
    weir_tensor_release(t);
    assert_int_equal(deleted, 0);
    weir_tensor_release(there);
    assert_int_equal(deleted, 1);
  }
}

static void refused(DLManagedTensorVersioned m, const char *id) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  int deleted = 0;
  m.manager_ctx = &deleted;
  assert_error(weir_tensor_from_dlpack(runtime, &m, &t, &err), &err, id);
  assert_null(t);
  assert_int_equal(deleted, 0); /* still the caller's */
}

static void test_in_refuses(void **state) {
  (void)state;
  float data[4] = {0};
  int64_t shape[] = {4}, huge[] = {INT64_MAX}, minus[] = {-4};
  DLManagedTensorVersioned good = managed(data, 1, shape, NULL, f32, NULL);
  DLManagedTensorVersioned m = good;
  m.version.major = 2;
  refused(m, "W0004");
  m = good;
  m.dl_tensor.device.device_type = (DLDeviceType)10;
  refused(m, "W0004");
  m.dl_tensor.device = (DLDevice){kDLCUDA, -1}; /* no machine has it */
  refused(m, "W6004");
  m = good;
  m.dl_tensor.dtype = (DLDataType){kDLBfloat, 16, 1};
  refused(m, "W2005");
  m.dl_tensor.dtype = (DLDataType){kDLFloat, 32, 2};
  refused(m, "W2005");
  m = good;
  m.dl_tensor.ndim = 9;
  refused(m, "W2003");
  m = good;
  m.dl_tensor.shape = huge;
  refused(m, "W2001");
  m.dl_tensor.shape = minus;
  refused(m, "W2002");
  m.dl_tensor.shape = NULL;
  refused(m, "W0004");
  m = good;
  m.dl_tensor.data = NULL;
  refused(m, "W0004");
}

static void test_out_and_back(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  const int64_t dims[] = {2, 3};
  const int64_t data[] = {1, 2, 3, 4, 5, 6};
  weir_tensor *t = NULL, *back = NULL;
  DLManagedTensorVersioned *m = NULL;
  assert_ok(weir_tensor_from_data(runtime,
                                  &(weir_tensor_spec)WEIR_TENSOR_SPEC(
                                      WEIR_I64, 2, dims, sizeof data),
                                  data, &t, &err),
            &err);
  assert_ok(weir_tensor_to_dlpack(t, &m, &err), &err);
  const void *where = weir_tensor_data(t);
  weir_tensor_release(t); /* the export holds it */
  assert_int_equal(m->version.major, 1);
  assert_int_equal(m->dl_tensor.ndim, 2);
  assert_int_equal(m->dl_tensor.strides[0], 3);
  assert_int_equal(m->dl_tensor.strides[1], 1);
  assert_int_equal(m->dl_tensor.dtype.code, kDLInt);
  assert_int_equal(m->dl_tensor.dtype.bits, 64);
  assert_ptr_equal(m->dl_tensor.data, where);
  assert_ok(weir_tensor_from_dlpack(runtime, m, &back, &err), &err);
  assert_ptr_equal(weir_tensor_data(back), where);
  assert_memory_equal(weir_tensor_data(back), data, sizeof data);
  weir_tensor_release(back);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_in_without_copy),
      cmocka_unit_test(test_in_strided_is_copied),
      cmocka_unit_test(test_in_zero_size_and_bool),
      cmocka_unit_test(test_in_from_cuda),
      cmocka_unit_test(test_in_refuses),
      cmocka_unit_test(test_out_and_back)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
