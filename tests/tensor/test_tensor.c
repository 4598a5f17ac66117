/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tensor/tensor.h"

#include <math.h>

#include "tests/check.h"

static void create_and_copy(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_counted_allocator_init(&c, NULL);
  weir_error err = WEIR_ERROR_INIT;
  weir_shape s = weir_shape_of(2, (int64_t[]){2, 2});
  weir_tensor *a = NULL, *b = NULL;
  assert_ok(weir_tensor_create_shaped(&c.base, WEIR_F32, &s, &a, &err), &err);
  assert_int_equal((uintptr_t)a->data % 64, 0);
  for (int i = 0; i < 4; i++) weir_tensor_set_f64(a, i, i + 0.5);
  assert_ok(weir_tensor_copy(&c.base, a, &b, &err), &err);
  assert_true(weir_tensor_get_f64(b, 3) == 3.5);
  weir_tensor_unref(weir_tensor_ref(a));
  weir_tensor_unref(a);
  weir_tensor_unref(b);
  weir_tensor_unref(NULL);
  assert_int_equal(atomic_load(&c.live_blocks), 0);
}

static void no_memory(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_counted_allocator_init(&c, NULL);
  c.fail_at = 1;
  weir_error err = WEIR_ERROR_INIT;
  weir_shape s = weir_shape_of(1, (int64_t[]){8});
  weir_tensor *a = NULL;
  assert_error(weir_tensor_create_shaped(&c.base, WEIR_I64, &s, &a, &err), &err,
               "W6001");
  assert_null(a);
}

static void count_release(void *self, void *data) {
  (void)data;
  ++*(int *)self;
}

static void wraps(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  int released = 0;
  int32_t data[3] = {1, 2, 3};
  weir_shape s = weir_shape_of(1, (int64_t[]){3});
  weir_tensor *t = NULL;
  weir_tensor_memory memory = {WEIR_I32, &s, data, count_release, &released};
  assert_ok(weir_tensor_wrap(weir_allocator_system(), &memory, &t, &err), &err);
  assert_ptr_equal(t->data, data);
  assert_int_equal(weir_tensor_get_i64(t, 2), 3);
  weir_tensor_unref(t);
  assert_int_equal(released, 1);
}

static void converts_with_clamping(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_shape s = weir_shape_of(1, (int64_t[]){1});
  weir_tensor *t = NULL;
  assert_ok(
      weir_tensor_create_shaped(weir_allocator_system(), WEIR_U8, &s, &t, &err),
      &err);
  weir_tensor_set_f64(t, 0, 300.0);
  assert_int_equal(weir_tensor_get_i64(t, 0), 255);
  weir_tensor_set_f64(t, 0, (double)NAN);
  assert_int_equal(weir_tensor_get_i64(t, 0), 0);
  weir_tensor_unref(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(create_and_copy),
      cmocka_unit_test(no_memory),
      cmocka_unit_test(wraps),
      cmocka_unit_test(converts_with_clamping),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
