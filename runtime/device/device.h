/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEVICE_DEVICE_H_
#define WEIR_DEVICE_DEVICE_H_

#include <stdatomic.h>

#include "runtime/base/env.h"
#include "runtime/base/status.h"
#include "runtime/device/name.h"

/* Devices.
 *
 * A device has memory, queues of work and events. A task has several. Work in
 * one queue happens in order; queues run side by side; an event marks a point
 * of a queue that another queue, or the host, can wait for. The host is a
 * device too: its queues are the calling thread, so each call has ended when it
 * returns, and events have always happened.
 *
 *   s = d->vt->alloc(d, bytes, &buffer, err);
 *   weir_device_place start = {&buffer, 0};
 *   s = d->vt->copy_in(d, queue, start, host_data, bytes, err);
 *   s = d->vt->record(d, queue, event, err);   ... other work ...
 *   s = d->vt->wait(d, event, err);            the copy has ended
 *   d->vt->free(d, &buffer);
 *
 * Copies are asynchronous: copy_in, copy_out, copy and copy_peer put the work
 * into a queue and may return before it has begun. The host's bytes of copy_in
 * must stay as they are, and those of copy_out are not to be looked at, until
 * an event has happened that was recorded after the copy, or the queue was
 * released. Buffers must stay as long. So an owner that gives up half-way
 * releases its queues first, then frees memory.
 *
 * Callers: tests only, so far; the executor will, once programs have parts on
 * a device other than the host. Any thread, no lock held; one queue or event is
 * one thread's at a time. A method that cannot do its work fails (W6001, W6004,
 * W5001) and leaves the device usable, unless it set |lost|: then it fails with
 * W6004, and so does every later call. Work that was queued may fail long
 * after its call: the failure is that of any later call.
 *
 * To add one: copy null.c, describe it in README.md. A device that needs a
 * driver lives in a module of its own behind the loader, so that one program
 * runs with and without it (cuda.h). */

typedef struct weir_device weir_device;
struct weir_gemm_vtable;
typedef struct weir_queue weir_queue; /* the device's own */
typedef struct weir_event weir_event; /* the device's own */

/* Memory of a device. The host may touch |host| when it is not NULL. */
typedef struct weir_device_buffer {
  void *handle;
  void *host;
  size_t bytes;
} weir_device_buffer;

/* A byte of a buffer. */
typedef struct weir_device_place {
  const weir_device_buffer *buffer;
  size_t offset;
} weir_device_place;

/* The memory of a device and its use, in bytes. */
typedef struct weir_device_memory {
  size_t total_bytes, limit_bytes, used_bytes, peak_bytes;
} weir_device_memory;

typedef struct weir_device_vtable {
  /* Queues, events and buffers are released before. */
  void (*release)(weir_device *device);
  /* At least 64-byte aligned, uninitialised; W6002 beyond the limit, W6001 when
   * the device has no more. */
  weir_status (*alloc)(weir_device *device, size_t bytes,
                       weir_device_buffer *out_buffer, weir_error *err);
  /* Clears |buffer|. No queued work may use it any more: its memory may be the
   * next buffer's at once. */
  void (*free)(weir_device *device, weir_device_buffer *buffer);
  /* Memory of the host that copies of this device are quick from and to: the
   * device reads and writes it without a copy in between. 64-byte aligned,
   * uninitialised. It counts neither against the limit nor, where a driver
   * gives it, in the allocator. Plain memory where that makes no difference.
   * Errors: W6001. */
  weir_status (*host_alloc)(weir_device *device, size_t bytes, void **out_data,
                            weir_error *err);
  void (*host_free)(weir_device *device, void *data); /* NULL-safe */
  /* Between host memory, of host_alloc or any other, and a buffer, and between
   * buffers of this device that do not overlap; offsets and sizes in bytes,
   * within the buffers (W9001). In the queue's order. */
  weir_status (*copy_in)(weir_device *device, weir_queue *queue,
                         weir_device_place dst, const void *src, size_t bytes,
                         weir_error *err);
  weir_status (*copy_out)(weir_device *device, weir_queue *queue, void *dst,
                          weir_device_place src, size_t bytes, weir_error *err);
  weir_status (*copy)(weir_device *device, weir_queue *queue,
                      weir_device_place dst, weir_device_place src,
                      size_t bytes, weir_error *err);
  /* To this device from |src_device|, another one of its kind or itself, in
   * the order of |queue|, this device's. Devices of different kinds: W9001,
   * their bytes go through the host. */
  weir_status (*copy_peer)(weir_device *device, weir_queue *queue,
                           weir_device_place dst, weir_device *src_device,
                           weir_device_place src, size_t bytes,
                           weir_error *err);
  weir_status (*queue_create)(weir_device *device, weir_queue **out_queue,
                              weir_error *err);
  /* Blocks until the queue's work has ended. NULL-safe. */
  void (*queue_release)(weir_device *device, weir_queue *queue);
  weir_status (*event_create)(weir_device *device, weir_event **out_event,
                              weir_error *err);
  void (*event_release)(weir_device *device, weir_event *event); /* NULL-safe */
  /* Marks the present end of |queue|; an earlier mark of |event| is gone. */
  weir_status (*record)(weir_device *device, weir_queue *queue,
                        weir_event *event, weir_error *err);
  /* Lets later work of |queue| start after |event|, which may be of another
   * device of this kind. One that was never recorded has happened. */
  weir_status (*queue_wait)(weir_device *device, weir_queue *queue,
                            weir_event *event, weir_error *err);
  /* Blocks the calling thread until |event| has happened. */
  weir_status (*wait)(weir_device *device, weir_event *event, weir_error *err);
  weir_device_memory (*memory)(weir_device *device);
  const struct weir_gemm_vtable *gemm; /* gemm.h; NULL: has none */
} weir_device_vtable;

/* Every device starts with this. */
struct weir_device {
  const weir_device_vtable *vt;
  const weir_allocator *alloc;
  weir_device_name name; /* full */
  atomic_bool lost;      /* set once, by the device */
};

void weir_device_release(weir_device *device); /* NULL-safe */

/* For implementations: whether |bytes| bytes from |place| on are inside its
 * buffer; fails with W9001 otherwise. */
weir_status weir_device_check_span(weir_device_place place, size_t bytes,
                                   weir_error *err);

/* For implementations of copy_peer: whether |peer| is of the kind of |device|;
 * fails with W9001 otherwise. */
weir_status weir_device_check_peer(const weir_device *device,
                                   const weir_device *peer, weir_error *err);

#endif
