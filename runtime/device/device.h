/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEVICE_DEVICE_H_
#define WEIR_DEVICE_DEVICE_H_

#include "runtime/base/env.h"
#include "runtime/base/status.h"
#include "runtime/device/name.h"

/* Devices.
 *
 * A device has memory, streams of work and events. A task has several. Work on
 * one stream happens in order; streams run side by side; an event marks a
 * point of a stream that another stream, or the host, can wait for. The host is
 * a device too: its streams are the calling thread, so each call has ended when
 * it returns, and events have always happened.
 *
 *   s = d->vt->alloc(d, bytes, &buffer, err);
 *   weir_device_place start = {&buffer, 0};
 *   s = d->vt->copy_in(d, stream, start, host_data, bytes, err);
 *   s = d->vt->record(d, stream, event, err);   ... other work ...
 *   s = d->vt->wait(d, event, err);             the copy has ended
 *   d->vt->free(d, buffer);
 *
 * Callers: tests only, so far; the executor will, once programs have parts on
 * a device other than the host. Any thread, no lock held. A method that cannot
 * do its work fails (W6001, W6004, W5001) and leaves the device usable,
 * unless it set |lost|: then every later call fails with W6004.
 *
 * To add one: copy null.c, describe it in README.md. A device that needs a
 * driver lives in a module of its own behind the loader, so that one program
 * runs with and without it. */

typedef struct weir_device weir_device;
typedef struct weir_stream weir_stream; /* the device's own */
typedef struct weir_event weir_event;   /* the device's own */

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
  void (*release)(weir_device *device);
  /* At least 64-byte aligned; fails with W6002 beyond the limit. */
  weir_status (*alloc)(weir_device *device, size_t bytes,
                       weir_device_buffer *out_buffer, weir_error *err);
  void (*free)(weir_device *device, weir_device_buffer *buffer);
  /* Between host memory and a buffer, and between buffers of this device;
   * offsets and sizes in bytes, within the buffers. In stream order. */
  weir_status (*copy_in)(weir_device *device, weir_stream *stream,
                         weir_device_place dst, const void *src, size_t bytes,
                         weir_error *err);
  weir_status (*copy_out)(weir_device *device, weir_stream *stream, void *dst,
                          weir_device_place src, size_t bytes, weir_error *err);
  weir_status (*copy)(weir_device *device, weir_stream *stream,
                      weir_device_place dst, weir_device_place src,
                      size_t bytes, weir_error *err);
  weir_status (*stream_create)(weir_device *device, weir_stream **out_stream,
                               weir_error *err);
  void (*stream_release)(weir_device *device, weir_stream *stream);
  weir_status (*event_create)(weir_device *device, weir_event **out_event,
                              weir_error *err);
  void (*event_release)(weir_device *device, weir_event *event);
  /* Marks the present end of |stream|. */
  weir_status (*record)(weir_device *device, weir_stream *stream,
                        weir_event *event, weir_error *err);
  /* Lets later work of |stream| start after |event|. */
  weir_status (*stream_wait)(weir_device *device, weir_stream *stream,
                             weir_event *event, weir_error *err);
  /* Blocks the calling thread until |event| has happened. */
  weir_status (*wait)(weir_device *device, weir_event *event, weir_error *err);
  weir_device_memory (*memory)(weir_device *device);
} weir_device_vtable;

/* Every device starts with this. */
struct weir_device {
  const weir_device_vtable *vt;
  const weir_allocator *alloc;
  weir_device_name name; /* full */
  bool lost;
};

void weir_device_release(weir_device *device); /* NULL-safe */

/* For implementations: whether |bytes| bytes from |place| on are inside its
 * buffer; fails with W9001 otherwise. */
weir_status weir_device_check_span(weir_device_place place, size_t bytes,
                                   weir_error *err);

#endif
