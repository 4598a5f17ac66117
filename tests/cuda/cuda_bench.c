/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/cuda_bench.h"

#include <stdlib.h>

enum { kGuard = CUDA_BENCH_GUARD, kMark = 0x5c };

void cuda_bench_open(cuda_bench *b) {
  weir_error err = WEIR_ERROR_INIT;
  *b = (cuda_bench){.device = cuda_world_device(0, 0)};
  weir_device *d = b->device;
  assert_ok(d->vt->queue_create(d, &b->queue, &err), &err);
  assert_ok(d->vt->event_create(d, &b->event, &err), &err);
  memset(b->guards, kMark, sizeof b->guards);
  if (standin != NULL) standin->set_check_launches(true);
}

void cuda_bench_close(cuda_bench *b) {
  weir_device *d = b->device;
  assert_int_equal(b->count, 0);
  d->vt->queue_release(d, b->queue);
  d->vt->event_release(d, b->event);
  weir_device_release(d);
  cuda_world_check_clean();
}

static void wait(cuda_bench *b) {
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = b->device;
  assert_ok(d->vt->record(d, b->queue, b->event, &err), &err);
  weir_status s = d->vt->wait(d, b->event, &err);
  if (s != WEIR_OK) fail_msg("%s: %s", err.message, cuda_world_fault());
}

/* A buffer with |data| between guards. */
void *cuda_bench_in(cuda_bench *b, const void *data, size_t bytes) {
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = b->device;
  assert_in_range(b->count, 0, CUDA_BENCH_BUFFERS - 1);
  weir_device_buffer *buffer = &b->buffers[b->count++];
  assert_ok(d->vt->alloc(d, bytes + 2 * kGuard, buffer, &err), &err);
  weir_device_place front = {buffer, 0}, at = {buffer, kGuard},
                    back = {buffer, kGuard + bytes};
  const weir_device_vtable *vt = d->vt;
  assert_ok(vt->copy_in(d, b->queue, front, b->guards, kGuard, &err), &err);
  assert_ok(vt->copy_in(d, b->queue, back, b->guards, kGuard, &err), &err);
  if (data != NULL)
    assert_ok(vt->copy_in(d, b->queue, at, data, bytes, &err), &err);
  wait(b);
  return (char *)buffer->handle + kGuard;
}

void *cuda_bench_inout(cuda_bench *b, const void *data, size_t bytes) {
  b->out[b->out_count++] = b->count;
  return cuda_bench_in(b, data, bytes);
}

void *cuda_bench_out(cuda_bench *b, size_t bytes) {
  return cuda_bench_inout(b, NULL, bytes);
}

void cuda_bench_run(cuda_bench *b, const char *body, uint32_t blocks,
                    const void *args, size_t bytes) {
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = b->device;
  const weir_device_body *found;
  const weir_device_grid grid = {{blocks, 1, 1}, WEIR_BODY_THREADS, 0};
  assert_ok(d->vt->body(d, body, &found, &err), &err);
  assert_ok(d->vt->launch(d, b->queue, found, &grid, args, bytes, &err), &err);
  wait(b);
}

void cuda_bench_get(cuda_bench *b, int k, void *data, size_t bytes) {
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = b->device;
  size_t all = bytes + 2 * kGuard;
  unsigned char *whole = malloc(all);
  assert_non_null(whole);
  assert_in_range(k, 0, b->out_count - 1);
  weir_device_place start = {&b->buffers[b->out[k]], 0};
  assert_int_equal(start.buffer->bytes, all);
  assert_ok(d->vt->copy_out(d, b->queue, whole, start, all, &err), &err);
  wait(b);
  assert_memory_equal(whole, b->guards, kGuard);
  assert_memory_equal(whole + kGuard + bytes, b->guards, kGuard);
  if (bytes > 0) memcpy(data, whole + kGuard, bytes);
  free(whole);
}

void cuda_bench_clear(cuda_bench *b) {
  for (int i = 0; i < b->count; i++)
    b->device->vt->free(b->device, &b->buffers[i]);
  b->count = b->out_count = 0;
}

void cuda_bench_take(cuda_bench *b, void *data, size_t bytes) {
  cuda_bench_get(b, 0, data, bytes);
  cuda_bench_clear(b);
}

const weir_isa *cuda_bench_avx2(void) {
#if !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
  for (int i = 0; weir_isa_at(i) != NULL; i++)
    if (weir_isa_level(weir_isa_at(i)) == 2) return weir_isa_at(i);
#endif
  return NULL;
}
