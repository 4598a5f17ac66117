/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tests/check.h"

static void fills_every_field(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_mark at = {"a.yaml", 3, 5, 3, 9};
  assert_int_equal(weir_fail(&err, WEIR_W2012, &at, "%d and %d", 784, 512),
                   WEIR_INVALID_ARGUMENT);
  assert_string_equal(err.id, "W2012");
  assert_string_equal(err.message, "784 and 512");
  assert_string_equal(err.file, "a.yaml");
  assert_int_equal(err.line, 3);
  assert_int_equal(err.end_col, 9);
  weir_hint(&err, "did you mean %s?", "x");
  assert_string_equal(err.hint, "did you mean x?");
  weir_error_set_node(&err, "h/matmul", 8);
  weir_error_set_node(&err, "other", 5);
  assert_string_equal(err.node, "h/matmul");
}

static void works_without_an_error(void **state) {
  (void)state;
  assert_int_equal(weir_fail(NULL, WEIR_W6001, NULL, "x"),
                   WEIR_RESOURCE_EXHAUSTED);
  weir_hint(NULL, "x");
}

static void escapes_and_cuts(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  (void)weir_fail(&err, WEIR_W1106, NULL, "%s", "a\x1b[31m%n");
  assert_string_equal(err.message, "a\\x1b[31m%n");
  char text[1000];
  memset(text, 'a', sizeof text);
  for (size_t i = 0; i + 1 < sizeof text; i += 2)
    memcpy(text + i, "\xc3\xa9", 2);
  text[sizeof text - 1] = '\0';
  text[0] = 'b'; /* code points now start at odd offsets after it */
  text[1] = 'b';
  (void)weir_fail(&err, WEIR_W1106, NULL, "%s", text);
  size_t n = strlen(err.message);
  assert_true(n >= 500 && n < sizeof err.message);
  assert_int_equal((unsigned char)err.message[n - 1], 0xa9);
}

static void table_is_sound(void **state) {
  (void)state;
  const char *last = "";
  for (int i = 0; weir_error_id_at(i) != NULL; i++) {
    const char *id = weir_error_id_at(i);
    assert_true(strcmp(last, id) < 0);
    assert_true(strlen(weir_error_title(id)) > 3);
    assert_true(strlen(weir_error_explain(id)) > 20);
    int code = weir_error_exit_code(id);
    assert_true((code >= 1 && code <= 9) || code == 130 || code == 138);
    last = id;
  }
  assert_null(weir_error_title("W9999"));
  assert_int_equal(weir_error_exit_code("x"), -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fills_every_field),
      cmocka_unit_test(works_without_an_error),
      cmocka_unit_test(escapes_and_cuts),
      cmocka_unit_test(table_is_sound),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
