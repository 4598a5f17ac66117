/* SPDX-License-Identifier: Apache-2.0 */
/* The programs of this folder run with oneDNN 3, and with one oneDNN alone. */
#include <dlfcn.h>

#include "kernels/cpu/onednn/onednn.h"
#include "tests/check.h"

static void the_version_is_3(void **state) {
  (void)state;
  char text[32];
  weir_onednn_version(text, sizeof text);
  assert_int_equal(text[0], '3');
  assert_int_equal(text[1], '.');
  assert_int_equal(weir_onednn_number() & 0xff, 3);
}

static void no_other_version_is_loaded(void **state) {
  (void)state;
  assert_null(dlopen("libdnnl.so.2", RTLD_NOLOAD | RTLD_NOW));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_version_is_3),
      cmocka_unit_test(no_other_version_is_loaded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
