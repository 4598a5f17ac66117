/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/host.h"
#include "runtime/device/null.h"
#include "tests/device/conformance.h"

/* The devices that are always there. */

static device_maker host = {weir_device_host_create, true, true};
static device_maker null = {weir_device_null_create, false, false};

int main(void) {
  const struct CMUnitTest tests[] = {DEVICE_CONFORMANCE(host),
                                     DEVICE_CONFORMANCE(null)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
