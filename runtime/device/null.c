/* SPDX-License-Identifier: Apache-2.0
 *
 * The null device: every method with its least possible body. To write a
 * device, copy this file, rename, and replace bodies from the top. */
#include "runtime/device/null.h"

#include "runtime/base/size.h"
#include "runtime/device/device.h"

typedef struct null_device {
  weir_device base;                           /* first: the vtable finds it */
  size_t limit_bytes, used_bytes, peak_bytes; /* one thread only */
} null_device;

static void null_release(weir_device *device) {
  weir_free(device->alloc, device);
}

/* A buffer is a size and a handle that is not NULL. */
static weir_status null_alloc(weir_device *device, size_t bytes,
                              weir_device_buffer *out_buffer, weir_error *err) {
  null_device *null = (null_device *)device;
  size_t used;
  *out_buffer = (weir_device_buffer){0};
  if (!weir_size_add(null->used_bytes, bytes, &used) ||
      (null->limit_bytes != 0 && used > null->limit_bytes))
    return weir_fail(err, WEIR_W6002, NULL,
                     "%zu bytes wanted, %zu of %zu in use", bytes,
                     null->used_bytes, null->limit_bytes);
  null->used_bytes = used;
  if (used > null->peak_bytes) null->peak_bytes = used;
  *out_buffer = (weir_device_buffer){.handle = null, .bytes = bytes};
  return WEIR_OK;
}

static void null_free(weir_device *device, weir_device_buffer *buffer) {
  if (buffer->handle == NULL) return;
  ((null_device *)device)->used_bytes -= buffer->bytes;
  *buffer = (weir_device_buffer){0};
}

/* Plain memory: the caller may write to it. */
static weir_status null_host_alloc(weir_device *device, size_t bytes,
                                   void **out_data, weir_error *err) {
  *out_data = weir_alloc_aligned(device->alloc, bytes, 64);
  return *out_data != NULL ? WEIR_OK : weir_fail_memory(err, bytes);
}

static void null_host_free(weir_device *device, void *data) {
  weir_free(device->alloc, data);
}

static weir_status null_copy_in(weir_device *device, weir_queue *queue,
                                weir_device_place dst, const void *src,
                                size_t bytes, weir_error *err) {
  (void)device, (void)queue, (void)src;
  return weir_device_check_span(dst, bytes, err);
}

static weir_status null_copy_out(weir_device *device, weir_queue *queue,
                                 void *dst, weir_device_place src, size_t bytes,
                                 weir_error *err) {
  (void)device, (void)queue, (void)dst;
  return weir_device_check_span(src, bytes, err);
}

static weir_status null_copy(weir_device *device, weir_queue *queue,
                             weir_device_place dst, weir_device_place src,
                             size_t bytes, weir_error *err) {
  (void)device, (void)queue;
  WEIR_TRY(weir_device_check_span(dst, bytes, err));
  return weir_device_check_span(src, bytes, err);
}

static weir_status null_copy_peer(weir_device *device, weir_queue *queue,
                                  weir_device_place dst,
                                  weir_device *src_device,
                                  weir_device_place src, size_t bytes,
                                  weir_error *err) {
  WEIR_TRY(weir_device_check_peer(device, src_device, err));
  return null_copy(device, queue, dst, src, bytes, err);
}

static weir_status null_queue_create(weir_device *device,
                                     weir_queue **out_queue, weir_error *err) {
  (void)device, (void)err;
  *out_queue = NULL;
  return WEIR_OK;
}

static void null_queue_release(weir_device *device, weir_queue *queue) {
  (void)device, (void)queue;
}

static weir_status null_event_create(weir_device *device,
                                     weir_event **out_event, weir_error *err) {
  (void)device, (void)err;
  *out_event = NULL;
  return WEIR_OK;
}

static void null_event_release(weir_device *device, weir_event *event) {
  (void)device, (void)event;
}

static weir_status null_record(weir_device *device, weir_queue *queue,
                               weir_event *event, weir_error *err) {
  (void)device, (void)queue, (void)event, (void)err;
  return WEIR_OK;
}

static weir_status null_wait(weir_device *device, weir_event *event,
                             weir_error *err) {
  (void)device, (void)event, (void)err;
  return WEIR_OK;
}

static bool null_is_over(weir_device *device, weir_event *event) {
  (void)device, (void)event;
  return true;
}

static weir_status null_elapsed(weir_device *device, weir_event *begin,
                                weir_event *end, int64_t *out_ns,
                                weir_error *err) {
  (void)device, (void)begin, (void)end, (void)err;
  *out_ns = 0;
  return WEIR_OK;
}

static weir_device_memory null_memory(weir_device *device) {
  const null_device *null = (const null_device *)device;
  return (weir_device_memory){.limit_bytes = null->limit_bytes,
                              .used_bytes = null->used_bytes,
                              .peak_bytes = null->peak_bytes};
}

static void null_set_limit(weir_device *device, size_t limit_bytes) {
  ((null_device *)device)->limit_bytes = limit_bytes;
}

static const weir_device_vtable kNull = {
    .release = null_release,
    .alloc = null_alloc,
    .free = null_free,
    .host_alloc = null_host_alloc,
    .host_free = null_host_free,
    .copy_in = null_copy_in,
    .copy_out = null_copy_out,
    .copy = null_copy,
    .copy_peer = null_copy_peer,
    .body = weir_device_no_body,
    .launch = weir_device_no_launch,
    .queue_create = null_queue_create,
    .queue_release = null_queue_release,
    .event_create = null_event_create,
    .event_release = null_event_release,
    .record = null_record,
    .queue_wait = null_record,
    .wait = null_wait,
    .is_over = null_is_over,
    .timer_create = null_event_create,
    .elapsed = null_elapsed,
    .memory = null_memory,
    .set_limit = null_set_limit,
    .gemm = NULL,
};

weir_status weir_device_null_create(const weir_allocator *alloc,
                                    const weir_device_name *name,
                                    size_t limit_bytes,
                                    weir_device **out_device, weir_error *err) {
  *out_device = NULL;
  null_device *null = weir_alloc_array(alloc, 1, sizeof *null);
  if (null == NULL) return weir_fail_memory(err, sizeof *null);
  null->base = (weir_device){.vt = &kNull, .alloc = alloc, .name = *name};
  null->limit_bytes = limit_bytes;
  *out_device = &null->base;
  return WEIR_OK;
}
