/* SPDX-License-Identifier: Apache-2.0
 * Conformance: the same cases for every device. */
#include "runtime/device/device.h"
#include "runtime/device/host.h"
#include "runtime/device/null.h"

#include "tests/check.h"

typedef weir_status (*create_fn)(const weir_allocator *,
                                 const weir_device_name *, size_t,
                                 weir_device **, weir_error *);

static const struct {
  create_fn create;
  bool keeps_data;
} kDevices[] = {{weir_device_host_create, true},
                {weir_device_null_create, false}};
enum { kDeviceCount = 2 };

static weir_device *make(int which, weir_counted_allocator *c, size_t limit) {
  weir_error err = WEIR_ERROR_INIT;
  weir_device *device = NULL;
  weir_device_name name;
  weir_counted_allocator_init(c, NULL);
  assert_ok(weir_device_name_parse(WEIR_SV_LIT("/job:a/task:0/cpu:0"), &name,
                                   NULL, &err),
            &err);
  assert_ok(kDevices[which].create(&c->base, &name, limit, &device, &err),
            &err);
  return device;
}

static void copies(void **state) {
  (void)state;
  for (int i = 0; i < kDeviceCount; i++) {
    weir_counted_allocator c;
    weir_error err = WEIR_ERROR_INIT;
    weir_device *d = make(i, &c, 0);
    weir_device_buffer a, b;
    weir_stream *stream = NULL;
    weir_event *event = NULL;
    char data[8] = "weir", back[8] = "";
    assert_ok(d->vt->stream_create(d, &stream, &err), &err);
    assert_ok(d->vt->event_create(d, &event, &err), &err);
    assert_ok(d->vt->alloc(d, 100, &a, &err), &err);
    assert_ok(d->vt->alloc(d, 100, &b, &err), &err);
    assert_ok(
        d->vt->copy_in(d, stream, (weir_device_place){&a, 10}, data, 8, &err),
        &err);
    assert_ok(d->vt->copy(d, stream, (weir_device_place){&b, 0},
                          (weir_device_place){&a, 10}, 8, &err),
              &err);
    assert_ok(
        d->vt->copy_out(d, stream, back, (weir_device_place){&b, 0}, 8, &err),
        &err);
    assert_ok(d->vt->record(d, stream, event, &err), &err);
    assert_ok(d->vt->stream_wait(d, stream, event, &err), &err);
    assert_ok(d->vt->wait(d, event, &err), &err);
    if (kDevices[i].keeps_data) assert_string_equal(back, "weir");
    assert_error(
        d->vt->copy_in(d, stream, (weir_device_place){&a, 99}, data, 2, &err),
        &err, "W9001");
    assert_error(d->vt->copy_out(d, stream, back,
                                 (weir_device_place){&a, SIZE_MAX}, 2, &err),
                 &err, "W9001");
    d->vt->free(d, &a);
    d->vt->free(d, &a); /* cleared: nothing happens */
    d->vt->free(d, &b);
    assert_int_equal(d->vt->memory(d).used_bytes, 0);
    assert_int_equal(d->vt->memory(d).peak_bytes, 200);
    d->vt->event_release(d, event);
    d->vt->stream_release(d, stream);
    weir_device_release(d);
    assert_int_equal(atomic_load(&c.live_blocks), 0);
  }
}

static void limit_is_kept(void **state) {
  (void)state;
  for (int i = 0; i < kDeviceCount; i++) {
    weir_counted_allocator c;
    weir_error err = WEIR_ERROR_INIT;
    weir_device *d = make(i, &c, 150);
    weir_device_buffer a, b;
    assert_ok(d->vt->alloc(d, 100, &a, &err), &err);
    assert_error(d->vt->alloc(d, 51, &b, &err), &err, "W6002");
    assert_error(d->vt->alloc(d, SIZE_MAX, &b, &err), &err, "W6002");
    assert_null(b.handle);
    assert_ok(d->vt->alloc(d, 50, &b, &err), &err);
    d->vt->free(d, &a);
    d->vt->free(d, &b);
    weir_device_release(d);
  }
}

static void no_memory(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = make(0, &c, 0);
  weir_device_buffer a;
  c.fail_at = atomic_load(&c.calls) + 1;
  assert_error(d->vt->alloc(d, 100, &a, &err), &err, "W6001");
  assert_int_equal(d->vt->memory(d).used_bytes, 0);
  weir_device_release(d);
  weir_device_name name = weir_device_name_any();
  for (int i = 0; i < kDeviceCount; i++) {
    weir_counted_allocator_init(&c, NULL);
    c.fail_at = 1;
    assert_error(kDevices[i].create(&c.base, &name, 0, &d, &err), &err,
                 "W6001");
    assert_null(d);
  }
  weir_device_release(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(copies),
      cmocka_unit_test(limit_is_kept),
      cmocka_unit_test(no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
