/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/device/conformance.h"

#include "runtime/device/host.h"
#include "runtime/device/null.h"

static weir_device_name name_of(int32_t index) {
  weir_error err = WEIR_ERROR_INIT;
  weir_device_name name;
  assert_ok(weir_device_name_parse(WEIR_SV_LIT("/job:a/task:0/gpu:0"), &name,
                                   NULL, &err),
            &err);
  name.index = (weir_index_range){index, index};
  return name;
}

/* Device |index|, with memory of |c|, which the caller has begun. */
static weir_device *make(const device_maker *m, weir_counted_allocator *c,
                         int32_t index, size_t limit) {
  weir_error err = WEIR_ERROR_INIT;
  weir_device *device = NULL;
  weir_device_name name = name_of(index);
  assert_ok(m->create(&c->base, &name, limit, &device, &err), &err);
  assert_false(atomic_load(&device->lost));
  return device;
}

void device_copies(void **state) {
  const device_maker *m = *state;
  weir_counted_allocator c;
  weir_counted_allocator_init(&c, NULL);
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = make(m, &c, 0, 0);
  weir_device_buffer a, b;
  weir_queue *queue = NULL;
  weir_event *event = NULL;
  char data[8] = "weir", back[8] = "", part[8] = "";
  assert_ok(d->vt->queue_create(d, &queue, &err), &err);
  assert_ok(d->vt->event_create(d, &event, &err), &err);
  assert_ok(d->vt->wait(d, event, &err), &err); /* never recorded: happened */
  assert_ok(d->vt->queue_wait(d, queue, event, &err), &err);
  assert_ok(d->vt->alloc(d, 100, &a, &err), &err);
  assert_ok(d->vt->alloc(d, 100, &b, &err), &err);
  assert_int_equal((uintptr_t)a.handle % 64 * m->keeps_data, 0);
  weir_device_place a10 = {&a, 10}, b0 = {&b, 0}, b1 = {&b, 1}, a99 = {&a, 99},
                    past = {&a, SIZE_MAX}, end = {&a, 100};
  assert_ok(d->vt->copy_in(d, queue, a10, data, 8, &err), &err);
  assert_ok(d->vt->copy(d, queue, b0, a10, 8, &err), &err);
  assert_ok(d->vt->copy_out(d, queue, back, b0, 8, &err), &err);
  assert_ok(d->vt->copy_out(d, queue, part, b1, 4, &err), &err);
  assert_ok(d->vt->copy_in(d, queue, end, data, 0, &err), &err);
  assert_ok(d->vt->record(d, queue, event, &err), &err);
  assert_ok(d->vt->queue_wait(d, queue, event, &err), &err);
  assert_ok(d->vt->wait(d, event, &err), &err);
  if (m->keeps_data) assert_string_equal(back, "weir");
  if (m->keeps_data) assert_string_equal(part, "eir");
  assert_error(d->vt->copy_in(d, queue, a99, data, 2, &err), &err, "W9001");
  assert_error(d->vt->copy_out(d, queue, back, past, 2, &err), &err, "W9001");
  assert_error(d->vt->copy(d, queue, b0, a99, 2, &err), &err, "W9001");
  assert_error(d->vt->copy(d, queue, a99, b0, 2, &err), &err, "W9001");
  d->vt->free(d, &a);
  d->vt->free(d, &a); /* cleared: nothing happens */
  d->vt->free(d, &b);
  assert_int_equal(d->vt->memory(d).used_bytes, 0);
  assert_int_equal(d->vt->memory(d).peak_bytes, 200);
  d->vt->event_release(d, event);
  d->vt->event_release(d, NULL);
  d->vt->queue_release(d, queue);
  d->vt->queue_release(d, NULL);
  weir_device_release(d);
  assert_int_equal(atomic_load(&c.live_blocks), 0);
}

/* What a queue was given is done when the queue is released. */
void device_times(void **state) {
  const device_maker *m = *state;
  weir_counted_allocator c;
  weir_counted_allocator_init(&c, NULL);
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = make(m, &c, 0, 0);
  weir_queue *queue = NULL;
  weir_event *marks[3] = {NULL};
  weir_device_buffer a;
  int64_t first = -1, second = -1, both = -1;
  char data[100] = "";
  assert_ok(d->vt->queue_create(d, &queue, &err), &err);
  assert_ok(d->vt->alloc(d, sizeof data, &a, &err), &err);
  for (int i = 0; i < 3; i++) {
    assert_ok(d->vt->timer_create(d, &marks[i], &err), &err);
    assert_ok(d->vt->copy_in(d, queue, (weir_device_place){&a, 0}, data,
                             sizeof data, &err),
              &err);
    assert_ok(d->vt->record(d, queue, marks[i], &err), &err);
  }
  assert_ok(d->vt->wait(d, marks[2], &err), &err);
  assert_ok(d->vt->elapsed(d, marks[0], marks[1], &first, &err), &err);
  assert_ok(d->vt->elapsed(d, marks[1], marks[2], &second, &err), &err);
  assert_ok(d->vt->elapsed(d, marks[0], marks[2], &both, &err), &err);
  assert_true(first >= 0 && second >= 0);
  int64_t off = both - first - second; /* floats of milliseconds */
  assert_true(off >= -1000 && off <= 1000);
  for (int i = 0; i < 3; i++) d->vt->event_release(d, marks[i]);
  d->vt->free(d, &a);
  d->vt->queue_release(d, queue);
  weir_device_release(d);
  assert_int_equal(atomic_load(&c.live_blocks), 0);
}

void device_host_memory(void **state) {
  const device_maker *m = *state;
  weir_counted_allocator c;
  weir_counted_allocator_init(&c, NULL);
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = make(m, &c, 0, 50);
  weir_device_buffer a;
  weir_queue *queue = NULL;
  void *src = NULL, *dst = NULL;
  assert_ok(d->vt->queue_create(d, &queue, &err), &err);
  assert_ok(d->vt->host_alloc(d, 100, &src, &err), &err);
  assert_ok(d->vt->host_alloc(d, 0, &dst, &err), &err);
  assert_non_null(dst);
  d->vt->host_free(d, dst);
  assert_ok(d->vt->host_alloc(d, 100, &dst, &err), &err);
  assert_int_equal((uintptr_t)src % 64 + (uintptr_t)dst % 64, 0);
  assert_ok(d->vt->alloc(d, 50, &a, &err), &err); /* all of the limit */
  memset(dst, 0, 100);
  memcpy(src, "pinned", 7);
  weir_device_place start = {&a, 0};
  assert_ok(d->vt->copy_in(d, queue, start, src, 7, &err), &err);
  assert_ok(d->vt->copy_out(d, queue, dst, start, 7, &err), &err);
  d->vt->queue_release(d, queue);
  if (m->keeps_data) assert_string_equal(dst, "pinned");
  d->vt->free(d, &a);
  d->vt->host_free(d, src);
  d->vt->host_free(d, dst);
  d->vt->host_free(d, NULL);
  weir_device_release(d);
  assert_int_equal(atomic_load(&c.live_blocks), 0);
}

void device_peers(void **state) {
  const device_maker *m = *state;
  weir_counted_allocator c;
  weir_counted_allocator_init(&c, NULL);
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d[3] = {make(m, &c, 0, 0), make(m, &c, 1, 0), NULL};
  weir_device_name name = name_of(2);
  /* Of a kind that |m| is not. */
  assert_ok((m->keeps_data ? weir_device_null_create : weir_device_host_create)(
                &c.base, &name, 0, &d[2], &err),
            &err);
  weir_device_buffer b[3];
  weir_queue *q[2];
  weir_event *filled;
  char data[8] = "across", back[8] = "";
  for (int i = 0; i < 3; i++)
    assert_ok(d[i]->vt->alloc(d[i], 16, &b[i], &err), &err);
  for (int i = 0; i < 2; i++)
    assert_ok(d[i]->vt->queue_create(d[i], &q[i], &err), &err);
  assert_ok(d[0]->vt->event_create(d[0], &filled, &err), &err);
  weir_device_place p0 = {&b[0], 8}, p1 = {&b[1], 0}, p2 = {&b[2], 0};
  assert_ok(d[0]->vt->copy_in(d[0], q[0], p0, data, 8, &err), &err);
  assert_ok(d[0]->vt->record(d[0], q[0], filled, &err), &err);
  assert_ok(d[1]->vt->queue_wait(d[1], q[1], filled, &err), &err);
  assert_ok(d[1]->vt->copy_peer(d[1], q[1], p1, d[0], p0, 8, &err), &err);
  assert_ok(d[1]->vt->copy_peer(d[1], q[1], p1, d[0], p0, 0, &err), &err);
  assert_ok(d[1]->vt->copy_out(d[1], q[1], back, p1, 8, &err), &err);
  assert_error(d[1]->vt->copy_peer(d[1], q[1], p1, d[0], p0, 9, &err), &err,
               "W9001");
  assert_error(d[1]->vt->copy_peer(d[1], q[1], p1, d[2], p2, 8, &err), &err,
               "W9001");
  assert_non_null(strstr(err.message, "another kind"));
  assert_error(d[2]->vt->copy_peer(d[2], NULL, p2, d[1], p1, 8, &err), &err,
               "W9001");
  for (int i = 0; i < 2; i++) d[i]->vt->queue_release(d[i], q[i]);
  if (m->keeps_data) assert_string_equal(back, "across");
  d[0]->vt->event_release(d[0], filled);
  for (int i = 0; i < 3; i++) {
    d[i]->vt->free(d[i], &b[i]);
    weir_device_release(d[i]);
  }
  assert_int_equal(atomic_load(&c.live_blocks), 0);
}

void device_limit_is_kept(void **state) {
  weir_counted_allocator c;
  weir_counted_allocator_init(&c, NULL);
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = make(*state, &c, 0, 150);
  weir_device_buffer a, b;
  assert_int_equal(d->vt->memory(d).limit_bytes, 150);
  assert_ok(d->vt->alloc(d, 100, &a, &err), &err);
  assert_error(d->vt->alloc(d, 51, &b, &err), &err, "W6002");
  assert_error(d->vt->alloc(d, SIZE_MAX, &b, &err), &err, "W6002");
  assert_null(b.handle);
  assert_ok(d->vt->alloc(d, 50, &b, &err), &err);
  /* Another limit, below what is there, above it, and none. */
  weir_device_buffer more;
  d->vt->set_limit(d, 120);
  assert_int_equal(d->vt->memory(d).limit_bytes, 120);
  assert_error(d->vt->alloc(d, 1, &more, &err), &err, "W6002");
  d->vt->free(d, &a);
  assert_error(d->vt->alloc(d, 71, &more, &err), &err, "W6002");
  assert_ok(d->vt->alloc(d, 70, &more, &err), &err);
  d->vt->set_limit(d, 0);
  assert_ok(d->vt->alloc(d, 1000, &a, &err), &err);
  d->vt->free(d, &more);
  d->vt->free(d, &a);
  d->vt->free(d, &b);
  weir_device_release(d);
  assert_int_equal(atomic_load(&c.live_blocks), 0);
}

void device_no_memory(void **state) {
  const device_maker *m = *state;
  weir_counted_allocator c;
  weir_counted_allocator_init(&c, NULL);
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = make(m, &c, 0, 0);
  weir_device_buffer a;
  if (m->alloc_counts) {
    c.fail_at = atomic_load(&c.calls) + 1;
    assert_error(d->vt->alloc(d, 100, &a, &err), &err, "W6001");
    assert_null(a.handle);
    assert_int_equal(d->vt->memory(d).used_bytes, 0);
  }
  weir_device_release(d);
  weir_device_name name = name_of(0);
  weir_counted_allocator_init(&c, NULL);
  c.fail_at = 1;
  assert_error(m->create(&c.base, &name, 0, &d, &err), &err, "W6001");
  assert_null(d);
  weir_device_release(NULL);
}
