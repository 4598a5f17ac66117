/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/host.h"

#include <stdatomic.h>

#include "runtime/base/size.h"
#include "runtime/device/device.h"

/* The host as a device: buffers are memory of the process, the calling thread
 * is the queue. The limit is kept by one atomic number, so any thread may
 * allocate; bytes are reserved before they are asked for and given back when
 * that fails, so the sum never passes the limit, not even for a moment. */

typedef struct host_device {
  weir_device base;
  atomic_size_t limit_bytes, used_bytes, peak_bytes;
} host_device;

static void host_release(weir_device *device) {
  weir_free(device->alloc, device);
}

/* Takes |bytes| out of the limit; false when that would exceed it. */
static bool reserve(host_device *host, size_t bytes) {
  size_t used = atomic_load(&host->used_bytes), wanted;
  size_t limit = atomic_load(&host->limit_bytes);
  do {
    if (!weir_size_add(used, bytes, &wanted)) return false;
    if (limit != 0 && wanted > limit) return false;
  } while (!atomic_compare_exchange_weak(&host->used_bytes, &used, wanted));
  size_t peak = atomic_load(&host->peak_bytes);
  while (wanted > peak &&
         !atomic_compare_exchange_weak(&host->peak_bytes, &peak, wanted)) {
  }
  return true;
}

static weir_status host_alloc(weir_device *device, size_t bytes,
                              weir_device_buffer *out_buffer, weir_error *err) {
  host_device *host = (host_device *)device;
  *out_buffer = (weir_device_buffer){0};
  if (!reserve(host, bytes))
    return weir_fail(
        err, WEIR_W6002, NULL, "%zu bytes wanted, %zu of %zu in use", bytes,
        atomic_load(&host->used_bytes), atomic_load(&host->limit_bytes));
  void *data = weir_alloc_aligned(device->alloc, bytes, 64);
  if (data == NULL) {
    atomic_fetch_sub(&host->used_bytes, bytes);
    return weir_fail_memory(err, bytes);
  }
  *out_buffer = (weir_device_buffer){data, data, bytes};
  return WEIR_OK;
}

static void host_free(weir_device *device, weir_device_buffer *buffer) {
  if (buffer->handle == NULL) return;
  atomic_fetch_sub(&((host_device *)device)->used_bytes, buffer->bytes);
  weir_free(device->alloc, buffer->handle);
  *buffer = (weir_device_buffer){0};
}

/* Copies are as quick from any memory. */
static weir_status host_host_alloc(weir_device *device, size_t bytes,
                                   void **out_data, weir_error *err) {
  *out_data = weir_alloc_aligned(device->alloc, bytes, 64);
  return *out_data != NULL ? WEIR_OK : weir_fail_memory(err, bytes);
}

static void host_host_free(weir_device *device, void *data) {
  weir_free(device->alloc, data);
}

static weir_status host_copy_in(weir_device *device, weir_queue *queue,
                                weir_device_place dst, const void *src,
                                size_t bytes, weir_error *err) {
  (void)device, (void)queue;
  WEIR_TRY(weir_device_check_span(dst, bytes, err));
  if (bytes > 0) memcpy((char *)dst.buffer->host + dst.offset, src, bytes);
  return WEIR_OK;
}

static weir_status host_copy_out(weir_device *device, weir_queue *queue,
                                 void *dst, weir_device_place src, size_t bytes,
                                 weir_error *err) {
  (void)device, (void)queue;
  WEIR_TRY(weir_device_check_span(src, bytes, err));
  if (bytes > 0)
    memcpy(dst, (const char *)src.buffer->host + src.offset, bytes);
  return WEIR_OK;
}

static weir_status host_copy(weir_device *device, weir_queue *queue,
                             weir_device_place dst, weir_device_place src,
                             size_t bytes, weir_error *err) {
  (void)device, (void)queue;
  WEIR_TRY(weir_device_check_span(dst, bytes, err));
  WEIR_TRY(weir_device_check_span(src, bytes, err));
  if (bytes > 0)
    memmove((char *)dst.buffer->host + dst.offset,
            (const char *)src.buffer->host + src.offset, bytes);
  return WEIR_OK;
}

static weir_status host_copy_peer(weir_device *device, weir_queue *queue,
                                  weir_device_place dst,
                                  weir_device *src_device,
                                  weir_device_place src, size_t bytes,
                                  weir_error *err) {
  WEIR_TRY(weir_device_check_peer(device, src_device, err));
  return host_copy(device, queue, dst, src, bytes, err);
}

/* The calling thread is the only queue: nothing to make or wait for. */
static weir_status host_queue_create(weir_device *device,
                                     weir_queue **out_queue, weir_error *err) {
  (void)device, (void)err;
  *out_queue = NULL;
  return WEIR_OK;
}

static void host_queue_release(weir_device *device, weir_queue *queue) {
  (void)device, (void)queue;
}

static weir_status host_event_create(weir_device *device,
                                     weir_event **out_event, weir_error *err) {
  (void)device, (void)err;
  *out_event = NULL;
  return WEIR_OK;
}

static void host_event_release(weir_device *device, weir_event *event) {
  (void)device, (void)event;
}

static weir_status host_record(weir_device *device, weir_queue *queue,
                               weir_event *event, weir_error *err) {
  (void)device, (void)queue, (void)event, (void)err;
  return WEIR_OK;
}

static weir_status host_wait(weir_device *device, weir_event *event,
                             weir_error *err) {
  (void)device, (void)event, (void)err;
  return WEIR_OK;
}

static bool host_is_over(weir_device *device, weir_event *event) {
  (void)device, (void)event;
  return true;
}

/* The caller's clock sees all of the work. */
static weir_status host_elapsed(weir_device *device, weir_event *begin,
                                weir_event *end, int64_t *out_ns,
                                weir_error *err) {
  (void)device, (void)begin, (void)end, (void)err;
  *out_ns = 0;
  return WEIR_OK;
}

static weir_device_memory host_memory(weir_device *device) {
  host_device *host = (host_device *)device;
  return (weir_device_memory){
      .limit_bytes = atomic_load(&host->limit_bytes),
      .used_bytes = atomic_load(&host->used_bytes),
      .peak_bytes = atomic_load(&host->peak_bytes),
  };
}

static void host_set_limit(weir_device *device, size_t limit_bytes) {
  atomic_store(&((host_device *)device)->limit_bytes, limit_bytes);
}

static const weir_device_vtable kHost = {
    .release = host_release,
    .alloc = host_alloc,
    .free = host_free,
    .host_alloc = host_host_alloc,
    .host_free = host_host_free,
    .copy_in = host_copy_in,
    .copy_out = host_copy_out,
    .copy = host_copy,
    .copy_peer = host_copy_peer,
    .body = weir_device_no_body,
    .launch = weir_device_no_launch,
    .queue_create = host_queue_create,
    .queue_release = host_queue_release,
    .event_create = host_event_create,
    .event_release = host_event_release,
    .record = host_record,
    .queue_wait = host_record,
    .wait = host_wait,
    .is_over = host_is_over,
    .timer_create = host_event_create,
    .elapsed = host_elapsed,
    .memory = host_memory,
    .set_limit = host_set_limit,
    .gemm = NULL, /* kernels of the host have their own */
};

weir_status weir_device_host_create(const weir_allocator *alloc,
                                    const weir_device_name *name,
                                    size_t limit_bytes,
                                    weir_device **out_device, weir_error *err) {
  *out_device = NULL;
  host_device *host = weir_alloc_array(alloc, 1, sizeof *host);
  if (host == NULL) return weir_fail_memory(err, sizeof *host);
  host->base = (weir_device){.vt = &kHost, .alloc = alloc, .name = *name};
  atomic_init(&host->limit_bytes, limit_bytes);
  *out_device = &host->base;
  return WEIR_OK;
}
