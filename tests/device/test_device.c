/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/host.h"
#include "runtime/device/null.h"
#include "tests/device/conformance.h"

/* The devices that are always there. */

static device_maker host = {weir_device_host_create, true, true};
static device_maker null = {weir_device_null_create, false, false};

static void check_no_bodies(device_maker *maker) {
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d;
  weir_device_name name;
  assert_ok(weir_device_name_parse(weir_sv_from("/job:a/task:0/device:CPU:0"),
                                   &name, NULL, &err),
            &err);
  assert_ok(maker->create(weir_allocator_system(), &name, 0, &d, &err), &err);
  const weir_device_body *body = (const weir_device_body *)d;
  const weir_device_grid grid = {{1, 1, 1}, 1, 0};
  assert_error(d->vt->body(d, "fill", &body, &err), &err, "W9001");
  assert_string_equal(err.message,
                      "/job:a/task:0/device:CPU:0 has no bodies, so no fill");
  assert_null(body);
  assert_error(d->vt->launch(d, NULL, NULL, &grid, &name, sizeof name, &err),
               &err, "W9001");
  weir_device_release(d);
}

static void refuse_bodies(void **state) {
  (void)state;
  check_no_bodies(&host);
  check_no_bodies(&null);
}

int main(void) {
  const struct CMUnitTest tests[] = {DEVICE_CONFORMANCE(host),
                                     DEVICE_CONFORMANCE(null),
                                     cmocka_unit_test(refuse_bodies)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
