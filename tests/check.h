/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CHECK_H_
#define TESTS_CHECK_H_

/* cmocka with the headers it wants before it, and the project's own checks. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* After the four above. */
#include <cmocka.h>
#include <stdio.h>

#include "runtime/base/status.h"
#include "tests/counted.h"

/* Fails the test and prints the error unless |expr| is WEIR_OK. */
#define assert_ok(expr, err)                                           \
  do {                                                                 \
    weir_status s_ = (expr);                                           \
    if (s_ != WEIR_OK)                                                 \
      fail_msg("%s: %s %s %s", #expr, weir_status_name(s_), (err)->id, \
               (err)->message);                                        \
  } while (0)

/* Fails unless |expr| fails with error |want| ("W2001"). */
#define assert_error(expr, err, want)     \
  do {                                    \
    weir_status s_ = (expr);              \
    assert_int_not_equal(s_, WEIR_OK);    \
    assert_string_equal((err)->id, want); \
  } while (0)

#endif
