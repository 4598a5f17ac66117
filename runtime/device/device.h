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
 * A device may have bodies, functions that its threads run: found by name once,
 * launched any number of times in a queue's order.
 *
 *   s = d->vt->body(d, "fill", &body, err);
 *   s = d->vt->launch(d, queue, body, &grid, &args, sizeof args, err);
 *
 * A device may keep work of a queue as a graph, and then do all of it by one
 * call, any number of times:
 *
 *   s = d->vt->capture_begin(d, queue, err);
 *   s = d->vt->copy_in(d, queue, start, pinned, bytes, err);  is kept, not done
 *   s = d->vt->launch(d, queue, body, &grid, &args, sizeof args, err);
 *   s = d->vt->capture_end(d, queue, &graph, err);
 *   s = d->vt->replay(d, queue, graph, err);   ... again and again ...
 *   d->vt->graph_release(d, graph);
 *
 * Copies are asynchronous: copy_in, copy_out, copy and copy_peer put the work
 * into a queue and may return before it has begun. The host's bytes of copy_in
 * must stay as they are, and those of copy_out are not to be looked at, until
 * an event has happened that was recorded after the copy, or the queue was
 * released. Buffers must stay as long. So an owner that gives up half-way
 * releases its queues first, then frees memory.
 *
 * Callers: the executor (exec/gpu) and tests. Any thread, no lock held; one
 * queue or event is one thread's at a time, but several may wait for an event
 * that was recorded. A method that cannot do its work fails (W6001, W6004,
 * W5001) and leaves the device usable, unless it set |lost|: then it fails with
 * W6004, and so does every later call. Work that was queued may fail long
 * after its call: the failure is that of any later call.
 *
 * To add one: copy null.c, describe it in README.md. A device that needs a
 * driver lives in a module of its own behind the loader, so that one program
 * runs with and without it (cuda.h). */

typedef struct weir_device weir_device;
typedef struct weir_queue weir_queue;               /* the device's own */
typedef struct weir_event weir_event;               /* the device's own */
typedef struct weir_device_body weir_device_body;   /* the device's own */
typedef struct weir_device_graph weir_device_graph; /* the device's own */
struct weir_gemm_vtable;

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

/* The threads of a launch: blocks[0] blocks[1] blocks[2] blocks of |threads|
 * each, which share |shared_bytes| beside what the body itself has. */
typedef struct weir_device_grid {
  uint32_t blocks[3], threads;
  uint32_t shared_bytes;
} weir_device_grid;

typedef struct weir_device_vtable {
  /* Queues, events, graphs and buffers are released before. */
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
   * the order of |queue|, this device's alone: its bytes are there by then.
   * Devices of different kinds: W9001, their bytes go through the host. */
  weir_status (*copy_peer)(weir_device *device, weir_queue *queue,
                           weir_device_place dst, weir_device *src_device,
                           weir_device_place src, size_t bytes,
                           weir_error *err);
  /* Finds the body |name|, a function that the device's threads run; it is the
   * device's own and lives as long. W9001: there is none of that name. */
  weir_status (*body)(weir_device *device, const char *name,
                      const weir_device_body **out_body, weir_error *err);
  /* Puts a run of |body| on all threads of |grid| into |queue|. |args| is the
   * body's one argument, a struct of |bytes| bytes, which is copied before the
   * call returns; addresses in it are handles of buffers, which stay as those
   * of copies do. No blocks: checked, and no work. W9001: another size than
   * the body's, no threads, more blocks, threads or memory than a device
   * has. */
  weir_status (*launch)(weir_device *device, weir_queue *queue,
                        const weir_device_body *body,
                        const weir_device_grid *grid, const void *args,
                        size_t bytes, weir_error *err);
  /* From here on copy_in, copy_out, copy, launch and a product's run put their
   * work for |queue| into a graph, and none of it is done; the host's bytes of
   * copies are memory of host_alloc. What was queued before goes on. All four
   * methods of graphs are NULL where a device has none.
   * Until capture_end the calling thread puts nothing else into |queue| and
   * waits, allocates, frees and releases nothing. Other threads may do all
   * that, with other queues, at the same time. A call that breaks this may fail
   * (W5001), and capture_end after it. */
  weir_status (*capture_begin)(weir_device *device, weir_queue *queue,
                               weir_error *err);
  /* Ends the capture, whatever comes of it, by the thread that began it; a
   * caller that gives up half-way does so too. The graph is the work since
   * capture_begin, ready to be replayed; after a failure there is none, and the
   * queue can be used. No work is a graph too. */
  weir_status (*capture_end)(weir_device *device, weir_queue *queue,
                             weir_device_graph **out_graph, weir_error *err);
  /* Puts all work of |graph|, in its order, into |queue|, which may be another
   * one of this device. The work names what it was given in the capture:
   * buffers, memory of host_alloc and plans of products stay until the last
   * replay has ended; their bytes may change, and each replay reads them anew.
   * Arguments of launches are those of the capture. A graph has at most one
   * replay under way: one queue's follow each other, and of two queues the
   * caller lets one wait for the other. */
  weir_status (*replay)(weir_device *device, weir_queue *queue,
                        weir_device_graph *graph, weir_error *err);
  /* No replay is under way. NULL-safe. */
  void (*graph_release)(weir_device *device, weir_device_graph *graph);
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
  /* Whether |event| has happened, or its wait would fail: without blocking. */
  bool (*is_over)(weir_device *device, weir_event *event);
  /* An event that keeps the time at which it happens, which makes it dearer; it
   * is used and released like any other, but its record is not captured. */
  weir_status (*timer_create)(weir_device *device, weir_event **out_timer,
                              weir_error *err);
  /* The time from |begin| to |end| by the device's own clock, in ns, to about a
   * microsecond; 0 of a device that has no clock. Both were recorded in queues
   * of this device and have happened (W5001). */
  weir_status (*elapsed)(weir_device *device, weir_event *begin,
                         weir_event *end, int64_t *out_ns, weir_error *err);
  weir_device_memory (*memory)(weir_device *device);
  /* From now on all buffers together take |limit_bytes| at most; 0: no limit.
   * Buffers that are there stay, and count. */
  void (*set_limit)(weir_device *device, size_t limit_bytes);
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

/* For implementations: the methods |body| and |launch| of a device that has no
 * bodies. Both fail with W9001. */
weir_status weir_device_no_body(weir_device *device, const char *name,
                                const weir_device_body **out_body,
                                weir_error *err);
weir_status weir_device_no_launch(weir_device *device, weir_queue *queue,
                                  const weir_device_body *body,
                                  const weir_device_grid *grid,
                                  const void *args, size_t bytes,
                                  weir_error *err);

#endif
