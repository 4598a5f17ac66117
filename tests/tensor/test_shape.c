/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tensor/shape.h"

#include "tests/check.h"

static void refuses(int rank, const int64_t *dims, weir_dtype dtype,
                    const char *id) {
  weir_error err = WEIR_ERROR_INIT;
  weir_shape shape = weir_shape_of(rank, dims);
  assert_error(weir_shape_check(&shape, dtype, &err), &err, id);
}

static void overflow_is_found(void **state) {
  (void)state;
  refuses(2, (int64_t[]){1LL << 32, 1LL << 31}, WEIR_U8, "W2001");
  refuses(3, (int64_t[]){0, 1LL << 62, 1LL << 62}, WEIR_U8, "W2001");
  refuses(3, (int64_t[]){1LL << 62, 1LL << 62, 0}, WEIR_U8, "W2001");
  refuses(1, (int64_t[]){1LL << 61}, WEIR_F64, "W2001");
  refuses(2, (int64_t[]){2, -1}, WEIR_F32, "W2002");
  weir_shape nine = {.rank = 9};
  weir_error err = WEIR_ERROR_INIT;
  assert_error(weir_shape_check(&nine, WEIR_F32, &err), &err, "W2003");
}

static void sizes(void **state) {
  (void)state;
  weir_shape s = weir_shape_of(3, (int64_t[]){2, 3, 4});
  assert_int_equal(weir_shape_elements(&s), 24);
  assert_int_equal(weir_shape_bytes(&s, WEIR_F64), 192);
  weir_shape scalar = weir_shape_of(0, NULL);
  assert_int_equal(weir_shape_elements(&scalar), 1);
  weir_shape empty = weir_shape_of(2, (int64_t[]){0, 7});
  assert_int_equal(weir_shape_elements(&empty), 0);
}

static const char *name(const void *self, uint32_t symbol) {
  (void)self;
  return symbol == 1 ? "batch" : "?";
}

static void prints(void **state) {
  (void)state;
  char text[64];
  weir_shape s = weir_shape_of(2, (int64_t[]){2, 3});
  s.dims[0] = (weir_dim){0, 1, 0};
  assert_string_equal(weir_shape_print(&s, name, NULL, text, sizeof text),
                      "[batch, 3]");
  s.dims[1] = (weir_dim){-1, 1, 0};
  assert_string_equal(weir_shape_print(&s, name, NULL, text, sizeof text),
                      "[batch, batch - 1]");
  assert_string_equal(weir_shape_print(&s, name, NULL, text, 5), "[bat");
  assert_false(weir_shape_known(&s));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(overflow_is_found),
      cmocka_unit_test(sizes),
      cmocka_unit_test(prints),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
