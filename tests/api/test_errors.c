/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "runtime/weir.h"
#include "tests/check.h"

/* Names, ids and messages: the texts that a program prints for errors and
 * dtypes. */

static void test_ids(void **state) {
  (void)state;
  int count = 0;
  for (const char *id; (id = weir_error_id_at(count)) != NULL; count++) {
    assert_non_null(weir_error_title(id));
    assert_true(weir_error_title(id)[0] != '\0');
    assert_non_null(weir_error_explain(id));
    int code = weir_error_exit_code(id);
    assert_true((code >= 1 && code <= 9) || code == 130 || code == 138);
  }
  assert_true(count > 100);
  assert_null(weir_error_id_at(-1));
  assert_null(weir_error_title("W0000"));
  assert_null(weir_error_explain("nothing"));
  assert_int_equal(weir_error_exit_code("W0000"), -1);
  assert_int_equal(weir_error_exit_code("W0004"), 2);
}

static void test_status_names(void **state) {
  (void)state;
  assert_string_equal(weir_status_name(WEIR_OK), "OK");
  assert_string_equal(weir_status_name(WEIR_UNAUTHENTICATED),
                      "UNAUTHENTICATED");
  assert_string_equal(weir_status_name((weir_status)99), "UNKNOWN");
}

static void test_dtypes(void **state) {
  (void)state;
  const struct {
    weir_dtype dtype;
    const char *name;
    size_t size;
    bool is_float;
  } rows[] = {{WEIR_F32, "f32", 4, true},  {WEIR_F64, "f64", 8, true},
              {WEIR_I32, "i32", 4, false}, {WEIR_I64, "i64", 8, false},
              {WEIR_U8, "u8", 1, false},   {WEIR_BOOL, "bool", 1, false}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const char *name = rows[i].name;
    assert_string_equal(weir_dtype_name(rows[i].dtype), name);
    assert_int_equal(weir_dtype_size(rows[i].dtype), rows[i].size);
    assert_int_equal(weir_dtype_is_float(rows[i].dtype), rows[i].is_float);
    assert_int_equal(weir_dtype_from_name(name, strlen(name)), rows[i].dtype);
  }
  assert_string_equal(weir_dtype_name(WEIR_DTYPE_NONE), "?");
  assert_int_equal(weir_dtype_size(WEIR_DTYPE_NONE), 0);
  assert_int_equal(weir_dtype_from_name("f32x", 4), WEIR_DTYPE_NONE);
}

typedef struct text {
  char data[2048];
  size_t size;
} text;

static bool append(void *self, const char *data, size_t size) {
  text *t = self;
  if (t->size + size >= sizeof t->data) return false;
  memcpy(t->data + t->size, data, size);
  t->size += size;
  t->data[t->size] = '\0';
  return true;
}

static void test_write(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  text out = {.size = 0};
  assert_error(weir_runtime_create(NULL, NULL, &err), &err, "W0004");
  assert_true(weir_error_write(&err, WEIR_DIAG_FORM_GCC, false, append, &out));
  assert_non_null(strstr(out.data, "out_runtime is NULL"));
  assert_non_null(strstr(out.data, "W0004"));
  out.size = 0;
  assert_true(weir_error_write(&err, WEIR_DIAG_FORM_JSON, false, append, &out));
  assert_int_equal(out.data[0], '{');
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ids), cmocka_unit_test(test_status_names),
      cmocka_unit_test(test_dtypes), cmocka_unit_test(test_write)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
